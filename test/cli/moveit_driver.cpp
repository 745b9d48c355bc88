// SPDX-License-Identifier: Apache-2.0
// Loads a kinematics plugin into MoveIt and prints what it does, one "name value" a line.
// Arguments: URDF, SRDF with a group arm, plugin, base link, tip link.

#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <moveit/kinematics_base/kinematics_base.hpp>
#include <moveit/robot_model/robot_model.hpp>
#include <moveit/robot_state/robot_state.hpp>
#include <pluginlib/class_loader.hpp>
#include <rclcpp/rclcpp.hpp>
#include <srdfdom/model.h>
#include <tf2_eigen/tf2_eigen.hpp>
#include <urdf_parser/urdf_parser.h>

using Code = moveit_msgs::msg::MoveItErrorCodes;
using Joints = std::vector<double>;
using Pose = geometry_msgs::msg::Pose;

static std::string read(const char *name)
{
    std::ifstream file(name);
    return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T> static void say(const char *name, const T &value) { std::cout << name << ' ' << value << '\n'; }

int main(int, char **given)
{
    rclcpp::init(0, nullptr);
    const auto urdf = urdf::parseURDF(read(given[1]));
    const auto srdf = std::make_shared<srdf::Model>();
    srdf->initString(*urdf, read(given[2]));
    const auto model = std::make_shared<moveit::core::RobotModel>(urdf, srdf);
    auto *const group = model->getJointModelGroup("arm");
    const std::string base = given[4], tip = given[5];
    pluginlib::ClassLoader<kinematics::KinematicsBase> loader("moveit_core", "kinematics::KinematicsBase");
    using Value = rclcpp::ParameterValue;
    const auto plugin = [&](bool roll_free, const std::string &from, const std::vector<std::string> &tips,
                            const std::string &name = "direction_tolerance", const Value &value = Value(0.01)) {
        const std::string group_parameters = "robot_description_kinematics.arm.";
        rclcpp::NodeOptions options;
        options.start_parameter_services(false).start_parameter_event_publisher(false).enable_rosout(false);
        options.parameter_overrides({{group_parameters + "roll_free", roll_free}});
        auto &overrides = options.parameter_overrides();
        if (name == "roll_free")
            overrides.clear();
        overrides.emplace_back(group_parameters + name, value);
        const auto node = std::make_shared<rclcpp::Node>("moveit_driver", options);
        const auto made = loader.createSharedInstance(given[3]);
        return made->initialize(node, *model, "arm", from, tips, 0.1) ? made : nullptr;
    };
    say("wrong_base", plugin(false, tip, {tip}) != nullptr);
    say("wrong_tip", plugin(false, base, {base}) != nullptr);
    say("two_tips", plugin(false, base, {tip, tip}) != nullptr);
    say("whole_number", plugin(false, base, {tip}, "direction_tolerance", Value(1)) != nullptr);
    say("below_zero", plugin(false, base, {tip}, "direction_tolerance", Value(-0.01)) != nullptr);
    say("text", plugin(false, base, {tip}, "direction_tolerance", Value("wide")) != nullptr);
    say("number", plugin(false, base, {tip}, "roll_free", Value(1)) != nullptr);
    const auto exact = plugin(false, base, {tip}), any_roll = plugin(true, base, {tip});
    if (!exact || !any_roll)
        return 1;
    kinematics::KinematicsQueryOptions plain, approximate;
    approximate.return_approximate_solution = true;

    random_numbers::RandomNumberGenerator random(3);
    moveit::core::RobotState state(model), found(model);
    const auto pose_in_base = [&](const moveit::core::RobotState &at) {
        return at.getGlobalLinkTransform(base).inverse() * at.getGlobalLinkTransform(tip);
    };
    int met = 0, met_turned = 0, refused = 0, set = 0;
    double worst = 0.0, worst_forward = 0.0;
    Joints q, seed, solution;
    Pose pose, turned;
    Code code;
    for (int k = 0; k < 200; ++k) {
        state.setToDefaultValues();
        state.setToRandomPositions(group, random);
        state.update();
        state.copyJointGroupPositions(group, q);
        const Eigen::Isometry3d place = pose_in_base(state);
        pose = tf2::toMsg(place);
        state.setToRandomPositions(group, random);
        state.copyJointGroupPositions(group, seed);
        if (exact->getPositionIK(pose, seed, solution, code, plain)) {
            ++met;
            state.setJointGroupPositions(group, solution);
            state.update();
            worst = std::max(worst, (pose_in_base(state).matrix() - place.matrix()).norm());
        }
        std::vector<Pose> poses;
        exact->getPositionFK({tip}, q, poses);
        Eigen::Isometry3d forward;
        tf2::fromMsg(poses.at(0), forward);
        worst_forward = std::max(worst_forward, (forward.matrix() - place.matrix()).norm());
        turned = tf2::toMsg(Eigen::Isometry3d(place * Eigen::AngleAxisd(1.0, Eigen::Vector3d::UnitZ())));
        refused += !exact->getPositionIK(turned, seed, solution, code, plain) && code.val == Code::NO_IK_SOLUTION;
        met_turned += exact->getPositionIK(turned, seed, solution, code, approximate);
        group->setSolverAllocators([&](const moveit::core::JointModelGroup *) { return any_roll; });
        found.setToDefaultValues();
        Eigen::Isometry3d wanted;
        tf2::fromMsg(turned, wanted);
        set += found.setFromIK(group, found.getGlobalLinkTransform(base) * wanted, tip, 0.0);
    }
    say("met", met);
    say("worst", worst);
    say("worst_forward", worst_forward);
    say("refused", refused);
    say("met_turned", met_turned);
    say("set_from_ik", set);

    std::vector<Joints> all;
    kinematics::KinematicsResult result;
    any_roll->getPositionIK({turned}, seed, all, result, plain);
    std::vector<Joints> offered;
    const kinematics::KinematicsBase::IKCallbackFn never = [&](const Pose &, const Joints &one, Code &answer) {
        offered.push_back(one);
        answer.val = Code::GOAL_IN_COLLISION;
    };
    say("never", any_roll->searchPositionIK(turned, seed, 1.0, solution, never, code, plain));
    say("never_code", code.val);
    say("all", all.size());
    say("offered_all", offered == all);
    const auto second = [&](const Pose &, const Joints &one, Code &answer) {
        answer.val = one == all.back() ? Code::SUCCESS : Code::GOAL_IN_COLLISION;
    };
    say("last", any_roll->searchPositionIK(turned, seed, 0.0, solution, second, code, plain) && solution == all.back());
    const auto slow = [&](const Pose &, const Joints &, Code &answer) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        answer.val = Code::GOAL_IN_COLLISION;
    };
    any_roll->searchPositionIK(turned, seed, 0.001, solution, slow, code, plain);
    say("slow_code", code.val);
    Joints near = all.at(0);
    near[0] += 0.01;
    say("near", any_roll->searchPositionIK(turned, near, 0.0, Joints(near.size(), 0.02), solution, code, plain));
    say("far", any_roll->searchPositionIK(turned, near, 0.0, Joints(near.size(), 0.005), solution, code, plain));
    say("short_seed", exact->getPositionIK(pose, {0.0}, solution, code, plain));
    say("short_seed_code", code.val);
    say("two_poses", any_roll->getPositionIK({pose, pose}, seed, all, result, plain));
    say("two_poses_error", result.kinematic_error);
    std::vector<Pose> poses;
    say("no_link", exact->getPositionFK({"no_link"}, q, poses));
    pose.orientation.w = pose.orientation.x = pose.orientation.y = pose.orientation.z = 0.0;
    say("no_turn", exact->getPositionIK(pose, seed, solution, code, plain));
    return 0;
}
