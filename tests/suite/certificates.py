"""Certificates for tests of TLS, made by openssl: an authority, and who it vouches for."""

import subprocess

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_OF_AN_AUTHORITY = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")  # Python 3.13 asks for what the standard does
_SIGNED = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")


def make_certificates(folder, **subjects):
    """ca.pem, and for each name NAME.pem: key and certificate of that subject, good for localhost and 127.0.0.1."""

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)

    openssl("req", "-x509", *_NEW_KEY, "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", *_OF_AN_AUTHORITY)
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n")
    for name, subject in subjects.items():
        openssl("req", *_NEW_KEY, "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl("x509", "-req", "-in", f"{name}.csr", *_SIGNED, "-out", f"{name}.crt")
        (folder / f"{name}.pem").write_text((folder / f"{name}.key").read_text() + (folder / f"{name}.crt").read_text())
    return folder
