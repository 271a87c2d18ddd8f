"""A PostgreSQL with TLS and SCRAM passwords on an address of this machine, until the input ends.

tls_server.py FOLDER ADDRESS      prints the URL of its socket once it answers

FOLDER gets fleet.test.crt and other.test.crt: certificates of two hosts, each its own authority. The server has the
first. ann and the owner have the password `secret`; the socket asks nobody for one.
"""

import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fleet"))
from server import PrivateServer  # noqa: E402


class TlsServer(PrivateServer):
    """Its certificate and its rules have to lie in its folder before it starts."""

    def __init__(self, folder, address):
        self.made = folder
        super().__init__({"listen_addresses": f"'{address}'", "ssl": "on", "ssl_cert_file": "'server.crt'",
                          "ssl_key_file": "'server.key'"})  # fmt: skip

    def _initialise(self):
        super()._initialise()
        for name in ("fleet.test", "other.test"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                            "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}"],
                           cwd=self.made, check=True, capture_output=True)  # fmt: skip
        for suffix in ("crt", "key"):
            shutil.copy(self.made / f"fleet.test.{suffix}", self.data / f"server.{suffix}")
        (self.data / "server.key").chmod(0o600)
        (self.data / "pg_hba.conf").write_text("local all all trust\nhostssl all all 127.0.0.0/8 scram-sha-256\n")
        if self.user:
            for name in ("server.crt", "server.key", "pg_hba.conf"):
                shutil.chown(self.data / name, self.user.pw_uid, self.user.pw_gid)


def main():
    with TlsServer(pathlib.Path(sys.argv[1]), sys.argv[2]) as server:
        with server.connect().cursor() as cursor:
            cursor.execute("CREATE ROLE ann LOGIN PASSWORD 'secret'")
            cursor.execute("CREATE DATABASE tw")
        print(server.url(dbname="tw"), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
