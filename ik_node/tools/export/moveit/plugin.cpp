// SPDX-License-Identifier: Apache-2.0
// MoveIt's kinematics plugin for the arm @arm@. Made by ik_export.
//
// Five joints meet a position and the direction of one axis of the tip, the tool axis; the roll about it
// results. Solutions with another roll than the pose are returned if approximate ones are allowed: by the query, or
// always with the parameter roll_free.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Geometry>
#include <pluginlib/class_list_macros.hpp>
#include <rclcpp/rclcpp.hpp>
#include <tf2_eigen/tf2_eigen.hpp>
#if __has_include(<moveit/kinematics_base/kinematics_base.hpp>)
#include <moveit/kinematics_base/kinematics_base.hpp>
#include <moveit/robot_state/robot_state.hpp>
#else  // Humble
#include <moveit/kinematics_base/kinematics_base.h>
#include <moveit/robot_state/robot_state.h>
#endif

#include "answers.hpp"

namespace @package@ {
using geometry_msgs::msg::Pose;
using kinematics::KinematicsQueryOptions;
using moveit_msgs::msg::MoveItErrorCodes;

constexpr double SAME_ROBOT = 1e-5;  // [m] and of unit vectors: the arm of the header is that of the robot
const std::string BASE = @base@, TIP = @tip@;
const std::vector<std::string> JOINTS(@arm@_joint_names, @arm@_joint_names + N);

class IkPlugin : public kinematics::KinematicsBase {
public:
  using KinematicsBase::searchPositionIK;
  using KinematicsBase::setRedundantJoints;

  bool initialize(const rclcpp::Node::SharedPtr& node, const moveit::core::RobotModel& robot_model,
                  const std::string& group_name, const std::string& base_frame,
                  const std::vector<std::string>& tip_frames, double search_discretization) override {
    node_ = node;
    storeValues(robot_model, group_name, base_frame, tip_frames, search_discretization);
    std::string doubt = find_doubt();
    if (doubt.empty())
      doubt = read_parameters();
    if (!doubt.empty()) {
      RCLCPP_ERROR(logger(), "group '%s': %s", group_name.c_str(), doubt.c_str());
      return false;
    }
    initialized_ = true;
    return true;
  }

  bool getPositionIK(const Pose& pose, const Joints& seed, Joints& solution, MoveItErrorCodes& error_code,
                     const KinematicsQueryOptions& options) const override {
    return search(pose, seed, 0.0, {}, solution, {}, error_code, options);
  }

  // All solutions, in the order in which a search would try them.
  bool getPositionIK(const std::vector<Pose>& poses, const Joints& seed, std::vector<Joints>& solutions,
                     kinematics::KinematicsResult& result, const KinematicsQueryOptions& options) const override {
    using namespace kinematics::KinematicErrors;
    solutions.clear();
    result.solution_percentage = 0.0;
    MoveItErrorCodes error_code;
    if (options.discretization_method != kinematics::DiscretizationMethods::NO_DISCRETIZATION)
      result.kinematic_error = UNSUPORTED_DISCRETIZATION_REQUESTED;
    else if (poses.size() != 1)
      result.kinematic_error = poses.empty() ? EMPTY_TIP_POSES : MULTIPLE_TIPS_NOT_SUPPORTED;
    else if (!accepts(poses[0], seed, {}, error_code))
      result.kinematic_error = SOLVER_NOT_ACTIVE;
    else {
      for (Answer& answer : solve(poses[0], seed, options))
        solutions.push_back(std::move(answer.q));
      result.kinematic_error = solutions.empty() ? NO_SOLUTION : OK;
      result.solution_percentage = solutions.empty() ? 0.0 : 1.0;
    }
    return !solutions.empty();
  }

  bool searchPositionIK(const Pose& pose, const Joints& seed, double timeout, Joints& solution,
                        MoveItErrorCodes& error_code, const KinematicsQueryOptions& options) const override {
    return search(pose, seed, timeout, {}, solution, {}, error_code, options);
  }

  bool searchPositionIK(const Pose& pose, const Joints& seed, double timeout, const Joints& consistency_limits,
                        Joints& solution, MoveItErrorCodes& error_code,
                        const KinematicsQueryOptions& options) const override {
    return search(pose, seed, timeout, consistency_limits, solution, {}, error_code, options);
  }

  bool searchPositionIK(const Pose& pose, const Joints& seed, double timeout, Joints& solution,
                        const IKCallbackFn& callback, MoveItErrorCodes& error_code,
                        const KinematicsQueryOptions& options) const override {
    return search(pose, seed, timeout, {}, solution, callback, error_code, options);
  }

  bool searchPositionIK(const Pose& pose, const Joints& seed, double timeout, const Joints& consistency_limits,
                        Joints& solution, const IKCallbackFn& callback, MoveItErrorCodes& error_code,
                        const KinematicsQueryOptions& options) const override {
    return search(pose, seed, timeout, consistency_limits, solution, callback, error_code, options);
  }

  // Of any links of the robot, in the base frame; joints of other groups are at their defaults.
  bool getPositionFK(const std::vector<std::string>& link_names, const Joints& q,
                     std::vector<Pose>& poses) const override {
    poses.clear();
    if (!initialized_ || q.size() != N)
      return false;
    const moveit::core::RobotState state = state_at(q);
    for (const std::string& name : link_names) {
      if (!robot_model_->hasLinkModel(name)) {
        RCLCPP_ERROR(logger(), "getPositionFK: the robot has no link '%s'", name.c_str());
        return false;
      }
      poses.push_back(tf2::toMsg(relative(state, name)));
    }
    return true;
  }

  const std::vector<std::string>& getJointNames() const override {
    return JOINTS;
  }

  const std::vector<std::string>& getLinkNames() const override {
    return tip_frames_;
  }

  bool setRedundantJoints(const std::vector<unsigned int>& joints) override {
    return joints.empty();  // every joint is needed for position and direction
  }

private:
  static rclcpp::Logger logger() {
    return rclcpp::get_logger("@package@");
  }

  static Eigen::Vector3d vector(const Vector& v) {
    return { v[0], v[1], v[2] };
  }

  static Vector array(const Eigen::Vector3d& v) {
    return { v.x(), v.y(), v.z() };
  }

  // Of any type: rclcpp throws for another one than that of the default, which would end move_group.
  template <typename T>
  rclcpp::Parameter parameter(const std::string& name, const T& value) const {
    const std::string full = "robot_description_kinematics." + group_name_ + "." + name;
    rcl_interfaces::msg::ParameterDescriptor any_type;
    any_type.dynamic_typing = true;
    if (!node_->has_parameter(full))
      node_->declare_parameter(full, rclcpp::ParameterValue(value), any_type);
    return node_->get_parameter(full);
  }

  // Why a parameter of the group is invalid, empty: all are set. A whole number in YAML is an integer.
  std::string read_parameters() {
    const rclcpp::Parameter roll_free = parameter("roll_free", false);
    const rclcpp::Parameter tolerance = parameter("direction_tolerance", 0.01);
    if (roll_free.get_type() != rclcpp::ParameterType::PARAMETER_BOOL)
      return "roll_free must be true or false, and is " + roll_free.value_to_string();
    roll_free_ = roll_free.as_bool();
    if (tolerance.get_type() == rclcpp::ParameterType::PARAMETER_INTEGER)
      direction_tolerance_ = static_cast<double>(tolerance.as_int());
    else if (tolerance.get_type() == rclcpp::ParameterType::PARAMETER_DOUBLE)
      direction_tolerance_ = tolerance.as_double();
    else
      direction_tolerance_ = -1.0;
    if (!(direction_tolerance_ >= 0.0))
      return "direction_tolerance must be an angle [rad] of at least 0, and is " + tolerance.value_to_string();
    return "";
  }

  moveit::core::RobotState state_at(const Joints& q) const {
    moveit::core::RobotState state(robot_model_);
    state.setToDefaultValues();
    state.setVariablePositions(JOINTS, q);
    state.updateLinkTransforms();
    return state;
  }

  Eigen::Isometry3d relative(const moveit::core::RobotState& state, const std::string& link) const {
    return state.getGlobalLinkTransform(BASE).inverse() * state.getGlobalLinkTransform(link);
  }

  // Why the group is not that of this plugin, empty: it is. Sets the limits, and the tool in the frame of the tip.
  std::string find_doubt() {
    if (tip_frames_.size() != 1)
      return "the plugin solves for one tip, and the group has " + std::to_string(tip_frames_.size());
    if (base_frame_ != BASE)
      return "its base is '" + base_frame_ + "' and that of the plugin is '" + BASE +
             "': correct base_link in the SRDF, or export with --base-link " + base_frame_;
    if (tip_frames_[0] != TIP)
      return "its tip is '" + tip_frames_[0] + "' and that of the plugin is '" + TIP +
             "': correct tip_link in the SRDF, or export with --tip-link " + tip_frames_[0];
    const moveit::core::JointModelGroup* group = robot_model_->getJointModelGroup(group_name_);
    if (!group)
      return "it does not exist";
    const std::vector<std::string>& names = group->getActiveJointModelNames();
    if (!std::is_permutation(names.begin(), names.end(), JOINTS.begin(), JOINTS.end())) {
      std::string text = "its joints are not those of the plugin:";
      for (const std::string& name : JOINTS)
        text += " " + name;
      return text;
    }
    for (std::size_t i = 0; i < N; ++i) {
      const moveit::core::VariableBounds& bounds = robot_model_->getVariableBounds(JOINTS[i]);
      low_[i] = bounds.position_bounded_ ? bounds.min_position_ : -HUGE_VAL;
      high_[i] = bounds.position_bounded_ ? bounds.max_position_ : HUGE_VAL;
    }
    for (int k = 0; k < 8; ++k) {  // at zero the axes of the tool are put into the frame of the tip; they stay there
      Joints q(N);
      for (std::size_t i = 0; i < N; ++i)
        q[i] = std::sin(1.7 * k * (i + 1.0));
      const Frame tool = forward(q);
      const Eigen::Isometry3d tip = relative(state_at(q), TIP);
      const Eigen::Vector3d point = tip.translation() - vector(tool.point);
      const Eigen::Vector3d axis = tip.linear().transpose() * vector(tool.axis);
      const Eigen::Vector3d lateral = tip.linear().transpose() * vector(tool.lateral);
      if (k == 0) {
        axis_ = axis;
        lateral_ = lateral;
      }
      if (point.norm() + (axis - axis_).norm() + (lateral - lateral_).norm() > SAME_ROBOT)
        return "robot_description is not the file that the plugin was made of: export again";
    }
    return "";
  }

  // Whether a query can be answered; else the reason is logged and in error_code.
  bool accepts(const Pose& pose, const Joints& seed, const Joints& consistency_limits,
               MoveItErrorCodes& error_code) const {
    const auto& p = pose.position;
    const auto& o = pose.orientation;
    const double squares = o.x * o.x + o.y * o.y + o.z * o.z + o.w * o.w;
    error_code.val = MoveItErrorCodes::INVALID_ROBOT_STATE;
    if (!initialized_)
      RCLCPP_ERROR(logger(), "the plugin is not initialized");
    else if (seed.size() != N)
      RCLCPP_ERROR(logger(), "the seed has %zu joints, and the arm %zu", seed.size(), N);
    else if (!std::all_of(seed.begin(), seed.end(), [](double value) { return std::isfinite(value); }))
      RCLCPP_ERROR(logger(), "the seed is not finite");
    else if (!consistency_limits.empty() && consistency_limits.size() != N)
      RCLCPP_ERROR(logger(), "%zu consistency limits, and the arm has %zu joints", consistency_limits.size(), N);
    else if (!std::isfinite(p.x + p.y + p.z) || !std::isfinite(squares) || squares < 1e-12) {
      error_code.val = MoveItErrorCodes::NO_IK_SOLUTION;
      RCLCPP_ERROR(logger(), "the pose is not finite, or its quaternion is zero");
    } else
      return true;
    return false;
  }

  std::vector<Answer> solve(const Pose& pose, const Joints& seed, const KinematicsQueryOptions& options) const {
    const auto& p = pose.position;
    const auto& o = pose.orientation;
    const Eigen::Quaterniond turn = Eigen::Quaterniond(o.w, o.x, o.y, o.z).normalized();
    const Frame wanted{ { p.x, p.y, p.z }, array(turn * axis_), array(turn * lateral_) };
    const bool any = options.return_approximate_solution;
    return find_answers(wanted, seed, low_, high_, roll_free_ || any, any ? PI : direction_tolerance_);
  }

  // The first solution within the consistency limits that the callback accepts. timeout: [s], 0: none.
  bool search(const Pose& pose, const Joints& seed, double timeout, const Joints& consistency_limits, Joints& solution,
              const IKCallbackFn& callback, MoveItErrorCodes& error_code, const KinematicsQueryOptions& options) const {
    const auto start = std::chrono::steady_clock::now();
    if (!accepts(pose, seed, consistency_limits, error_code))
      return false;
    for (const Answer& answer : solve(pose, seed, options)) {
      bool near = true;
      for (std::size_t i = 0; i < consistency_limits.size(); ++i)
        near = near && std::abs(answer.q[i] - seed[i]) <= consistency_limits[i];
      if (!near)
        continue;
      error_code.val = MoveItErrorCodes::SUCCESS;
      if (callback)
        callback(pose, answer.q, error_code);
      if (error_code.val == MoveItErrorCodes::SUCCESS) {
        solution = answer.q;
        return true;
      }
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      if (timeout > 0.0 && passed.count() > timeout) {
        error_code.val = MoveItErrorCodes::TIMED_OUT;
        return false;
      }
    }
    error_code.val = MoveItErrorCodes::NO_IK_SOLUTION;
    return false;
  }

  bool initialized_ = false;
  bool roll_free_ = false;            // roll about the tool axis, without the query saying so
  double direction_tolerance_ = 0.0;  // [rad]: with roll_free, of the tool axis
  Eigen::Vector3d axis_, lateral_;    // of the tool, in the frame of the tip
  Joints low_ = Joints(N), high_ = Joints(N);
};

}  // namespace @package@

PLUGINLIB_EXPORT_CLASS(@package@::IkPlugin, kinematics::KinematicsBase)
