# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyJouleprof(PythonPackage):
    """An energy profiler for GPUs and CPUs: joules per device, process, layer and kernel, with
    95 % confidence intervals."""

    homepage = "https://github.com/OWNER/jouleprof"
    url = "https://github.com/OWNER/jouleprof/releases/download/v@VERSION@/jouleprof-@VERSION@-source.tar.gz"

    license("MIT", checked_by="OWNER")

    version("@VERSION@", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("bench", default=False, description="PyTorch and transformers, for `jouleprof bench`")
    variant("plot", default=False, description="matplotlib, for jouleprof.plot")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("py-scikit-build-core", type="build")
    depends_on("py-nanobind@2.9:", type="build")

    depends_on("python@3.9:", type=("build", "link", "run"))
    depends_on("py-torch@2.3:", when="+bench", type="run")
    depends_on("py-transformers@4.44:", when="+bench", type="run")
    depends_on("py-matplotlib@3.6:", when="+plot", type="run")

    depends_on("boost@1.74:")
    depends_on("cli11")
    depends_on("eigen@3")
    depends_on("fmt")
    depends_on("libxcrypt")
    depends_on("nlohmann-json")
    depends_on("openssl")
    depends_on("protozero")
    depends_on("sqlitecpp")
    depends_on("tl-expected")
    depends_on("yaml-cpp")
    depends_on("zlib-api")

    # It reads Linux's sensors.
    conflicts("platform=darwin")
    conflicts("platform=windows")
