# SPDX-License-Identifier: Apache-2.0
"""Set up .venv with this package and the extras that are named: python3 tools/set_up.py viewer test

Packages have the tested versions, with the hashes in CONSTRAINTS, if there is such a file for this Python;
without it, and with --newest, they are the newest that setup.py allows. uv and pip are those of FIRST. A
file with another hash ends the installation: nothing is tried that would accept it.

One line per step, the whole output of a step that fails. It is uv that installs, with what pip is configured
to (indexes, certificates, proxies), and pip itself where uv is not available or fails. What is set up already
is left as it is; setup.py is read again when it has changed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / '.venv'
PYTHON = VENV / 'bin' / 'python'
UV = VENV / 'bin' / 'uv'
STATE = VENV / '.ready'  # what was set up, and where; it is absent while that is going on
CONSTRAINTS = ROOT / 'tools' / f'constraints-{sys.version_info[0]}.{sys.version_info[1]}.txt'
KERNELS = ROOT / 'ik_node' / 'kernels' / 'build.py'

# What is downloaded first and installs all else: wheels for every Python, with glibc and musl.
FIRST = """\
uv==0.13.9 --hash=sha256:d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19 \\
    --hash=sha256:2c45530751517d6c3bbc69a19473f6effe47cce047bede01ffd8af7ea7b36b25
pip==26.3 --hash=sha256:f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13
"""
# A C compiler for computers without one: it compiles the kernels and goes again, as it takes 400 MB.
ZIG = 'ziglang==0.17.1 --hash=sha256:ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54\n'
COMPILERS = ('cc', 'gcc', 'clang')
# What uv and pip say about a file that is not the expected one.
MISMATCH = re.compile('hash mismatch|do not match the hashes', re.IGNORECASE)

# pip's options and uv's variables for them; pip separates several values by blanks or new lines.
UV_VARIABLES = {
    'index-url': 'UV_DEFAULT_INDEX',
    'extra-index-url': 'UV_EXTRA_INDEX_URL',
    'find-links': 'UV_FIND_LINKS',
    'trusted-host': 'UV_INSECURE_HOST',
    'timeout': 'UV_HTTP_TIMEOUT',
    'default-timeout': 'UV_HTTP_TIMEOUT',
    'proxy': 'ALL_PROXY',
    'no-cache-dir': 'UV_NO_CACHE',
}
SEPARATORS = {'find-links': ','}


HASHED = ('install', '--require-hashes', '--no-deps')

FINDER = """import sys
from importlib.machinery import PathFinder


class First:
    @staticmethod
    def find_spec(name, path=None, target=None):
        found = PathFinder.find_spec(name) if name == 'ik_node' else None
        if found is None or found.origin:
            return None
        editable = (one for one in sys.meta_path if getattr(one, '__name__', '') == '_EditableFinder')
        return next((spec for one in editable if (spec := one.find_spec(name))), None)


sys.meta_path.insert(0, First)
"""


class StepError(Exception):
    """A step that failed, with all that it printed."""


class Step:
    """A line for a step: what it does, then how long it took."""

    def __init__(self, what: str) -> None:
        self.result = ''
        print(f'  {what} '.ljust(40, '.'), end=' ', flush=True)

    def __enter__(self) -> Step:
        self._start = time.monotonic()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        failed = 'failed after ' if kind else ''
        print(f'{failed}{time.monotonic() - self._start:.1f} s{self.result}', flush=True)


def call(*command: object, **variables: str) -> str:
    """Return what a command printed; raises StepError with it if the command failed."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise StepError(f'{done.stdout.rstrip()}\n{" ".join(map(str, command))} ended with {done.returncode}')
    return done.stdout


def constraints(newest: bool) -> str:
    """Return the text of CONSTRAINTS, '' if the newest versions are wanted or this Python has none."""
    return '' if newest or not CONSTRAINTS.exists() else CONSTRAINTS.read_text(encoding='utf-8')


def wanted(extras: list[str], newest: bool = False) -> dict[str, object]:
    """Return what STATE holds once the extras are installed."""
    return {
        'folder': str(ROOT),
        'setup.py': hashlib.sha256((ROOT / 'setup.py').read_bytes()).hexdigest(),
        'constraints': hashlib.sha256(constraints(newest).encode()).hexdigest(),
        'extras': sorted(extras),
    }


def present() -> dict[str, object]:
    """Return what STATE holds; nothing if .venv is incomplete, was moved or lost its Python."""
    try:
        state: dict[str, object] = json.loads(STATE.read_text(encoding='utf-8'))
        version = call(PYTHON, '-S', '-c', 'import sys; print(*sys.version_info[:2], sep=".")').strip()
        whole = state['folder'] == str(ROOT) and (VENV / 'lib' / f'python{version}').is_dir()
        return state if whole else {}
    except (OSError, ValueError, KeyError, TypeError, StepError):
        return {}


def pip_wheel() -> str:
    """Return the pip that comes with Python as a wheel, '' if it is not where Python or Debian keep it."""
    import ensurepip

    folders = [Path(ensurepip.__file__).parent / '_bundled', sysconfig.get_config_var('WHEEL_PKG_DIR')]
    folders.append('/usr/share/python-wheels')
    found = [str(wheel) for folder in folders if folder for wheel in sorted(Path(folder).glob('pip-*.whl'))]
    return found[0] if found else ''


def uv_settings(config: str) -> dict[str, str]:
    """Return environment variables that make uv do what pip is configured to.

    config: what "pip config list" prints, lines like global.timeout='60'; the environment's come first there,
    though they outrank those of "install", which outrank the global ones.
    """
    options: dict[str, str] = {}
    lines = re.findall(r"^(global|install|:env:)\.([\w-]+)=(['\"].*['\"])$", config, re.MULTILINE)
    for scope in ('global', 'install', ':env:'):
        options.update({name: ast.literal_eval(value) for where, name, value in lines if where == scope})
    settings = {'UV_INDEX_STRATEGY': 'unsafe-best-match'}  # as pip: the best version of all indexes
    for name, value in options.items():
        if name in UV_VARIABLES:
            settings[UV_VARIABLES[name]] = SEPARATORS.get(name, ' ').join(value.split())
        elif name == 'cert':
            settings['SSL_CERT_DIR' if Path(value).is_dir() else 'SSL_CERT_FILE'] = value
    return {name: value for name, value in settings.items() if name not in os.environ}


def install(extras: list[str], newest: bool = False) -> None:
    """Install this package, editable, and what it needs. Raises StepError."""
    as_pip = without_pip()
    if as_pip == {'PYTHONPATH': ''}:
        with Step('installing pip'):
            call(PYTHON, '-m', 'ensurepip', '--upgrade')
    pip = (PYTHON, '-m', 'pip')
    package = f'.[{",".join(extras)}]'
    pinned = constraints(newest)
    tested = ['--constraint', CONSTRAINTS, '--build-constraint', CONSTRAINTS]
    try:
        if not UV.exists():
            first = VENV / 'first.txt'
            first.write_text(FIRST, encoding='utf-8')
            with Step('fetching uv'):
                call(*pip, *HASHED, '--only-binary', ':all:', '-r', first, **as_pip)
        settings = uv_settings(call(*pip, 'config', 'list', **as_pip))
        with Step(f'installing {"tested" if pinned else "newest"} packages') as step:
            chosen = tested if pinned else ['--upgrade']
            said = call(UV, 'pip', 'install', '--python', PYTHON, '--editable', package, *chosen, **settings)
            step.result = ''.join(f', {count} packages' for count in re.findall(r'Installed (\d+) package', said))
    except StepError as error:
        if MISMATCH.search(str(error)):
            raise StepError(
                f'{error}\nA package is not the tested one: it was changed on the way, or on the index. '
                'Nothing else was tried.'
            ) from None
        print(f'{error}\nuv failed: trying pip, which takes a minute or two.', file=sys.stderr, flush=True)
        with Step('installing packages with pip'):
            if not pinned:
                call(*pip, 'install', 'pip', '--editable', package, '--upgrade', **as_pip)
                return
            # pip takes no editable package where there are hashes: all packages first, then this one.
            try:
                call(*pip, *HASHED, '-r', CONSTRAINTS, **as_pip)
                call(*pip, 'install', '--no-deps', '--no-build-isolation', '--editable', package, **as_pip)
            except StepError as missing:
                raise StepError(
                    f'{missing}\nThe tested versions could not be installed. Others, without hashes: '
                    f'{sys.executable} tools/set_up.py --newest {" ".join(extras)}'
                ) from None


def prefer_package() -> None:
    """Have Python find this package before a folder of its name, such as a clone beside the script that runs.

    Python takes such a folder for a package without __init__.py, before it asks the finder that setuptools
    has appended for an editable package. A .pth file is read when Python starts.
    """
    version = call(PYTHON, '-S', '-c', 'import sys; print(*sys.version_info[:2], sep=".")').strip()
    packages = VENV / 'lib' / f'python{version}' / 'site-packages'
    packages.joinpath('ik_node_first.py').write_text(FINDER, encoding='utf-8')
    packages.joinpath('ik_node_first.pth').write_text('import ik_node_first\n', encoding='utf-8')


def save_space() -> None:
    """Remove the headers of C++ that come with coal, and store versions of one library once.

    Wheels hold no links: libassimp.so, libassimp.so.6 and libassimp.so.6.0.5 are three files.
    """
    for headers in VENV.glob('lib/python*/site-packages/cmeel.prefix/include'):
        shutil.rmtree(headers)
    kept: dict[tuple[Path, int, bytes], Path] = {}
    for path in sorted(VENV.glob('lib/**/*.so*')):
        if path.is_symlink() or (size := path.stat().st_size) < 100_000:
            continue
        first = kept.setdefault((path.parent, size, hashlib.sha256(path.read_bytes()).digest()), path)
        if not first.samefile(path):
            path.unlink()
            path.hardlink_to(first)


def compile_kernels() -> None:
    """Compile the kernels: behind all else that the machine does, or at once where the compiler is fetched.

    Without them everything works, but slowly: what fails here is told and no error.
    """
    command = [str(PYTHON), '-m', 'ik_node.kernels.build']
    if os.environ.get('CC') or any(map(shutil.which, COMPILERS)):
        subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: os.nice(19),  # safe: there is one thread
        )
        return
    try:
        with tempfile.TemporaryDirectory(prefix='ik_node-') as folder:
            fetch_compiler(Path(folder))
            with Step('compiling the kernels'):
                call(
                    *command,
                    PYTHONPATH=str(Path(folder, 'zig')),
                    ZIG_GLOBAL_CACHE_DIR=str(Path(folder, 'cache')),
                )
    except StepError as error:
        print(
            f'{error}\nWithout a C compiler solving is slow: sudo apt install gcc',
            file=sys.stderr,
            flush=True,
        )


def fetch_compiler(folder: Path) -> None:
    """Install a C compiler into folder/zig. Raises StepError."""
    with Step('fetching a C compiler'):
        listed = folder / 'zig.txt'
        listed.write_text(ZIG, encoding='utf-8')
        chosen = ('--target', folder / 'zig', '--python', PYTHON, '--require-hashes')
        call(UV, 'pip', 'install', *chosen, '-r', listed, **pip_settings())


def pip_settings() -> dict[str, str]:
    """Return environment variables that make uv do what the pip of .venv is configured to."""
    return uv_settings(call(PYTHON, '-m', 'pip', 'config', 'list', **without_pip()))


def without_pip() -> dict[str, str]:
    """Return environment variables with which Python finds a pip, though .venv may have none."""
    return {} if (VENV / 'bin' / 'pip').exists() else {'PYTHONPATH': pip_wheel()}


def check() -> str:
    """Return why no environment can be made here, '' if it can."""
    if not (3, 10) <= sys.version_info[:2] <= (3, 14):
        return (
            f'ik_node needs Python 3.10 to 3.14; {sys.executable} is Python {platform.python_version()}. '
            'Name another: make PYTHON=python3.12'
        )
    if (platform.system(), platform.machine()) != ('Linux', 'x86_64'):
        return 'PyPI has ROS 2 for x86-64 Linux only. Elsewhere install ROS 2 itself: see README.md.'
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        name = Path(sys.executable).name
        return f'{sys.executable} cannot make virtual environments: sudo apt install {name}-venv'
    return ''


def main(arguments: list[str]) -> int:
    """Return 0 if all is set up, 1 if not, 130 after Ctrl-C."""
    newest = '--newest' in arguments
    extras = [name for name in arguments if name != '--newest']
    state = present()
    known = state.get('extras', [])
    assert isinstance(known, list)
    target = wanted(list({*known, *extras}), newest)
    if state == target:
        return 0
    if not state and (reason := check()):
        print(reason, file=sys.stderr)
        return 1
    try:
        STATE.unlink(missing_ok=True)
        if not state:
            print('Setting up .venv from PyPI, once:', flush=True)
            with Step(f'creating .venv for Python {platform.python_version()}'):
                shutil.rmtree(VENV, ignore_errors=True)
                call(sys.executable, '-m', 'venv', '--without-pip', VENV)
        else:
            print('Bringing .venv up to date:', flush=True)
        install(sorted({*known, *extras}), newest)
        prefer_package()
        save_space()
        STATE.write_text(json.dumps(target), encoding='utf-8')
    except StepError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if KERNELS.exists():
        compile_kernels()
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
