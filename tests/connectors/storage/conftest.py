"""Real servers of file systems, one of each for a whole run."""

import pytest

from tests.suite.shared import run_folder, shared


@pytest.fixture(scope="session")
def s3(tmp_path_factory, load_server, give_up):
    """A client of a real server of S3's protocol, and its address: make buckets of your own."""
    import boto3

    server = load_server("s3")
    try:
        with shared(run_folder(tmp_path_factory), "s3", lambda: server.S3Server().start().handed_over()) as told:
            login = {"aws_access_key_id": server.ACCESS, "aws_secret_access_key": server.SECRET}
            client = boto3.session.Session().client("s3", region_name="us-east-1", endpoint_url=told["url"], **login)
            yield client, told["url"], (server.ACCESS, server.SECRET)
            client.close()
    except server.Unavailable as reason:
        give_up(f"no S3 server: {reason}")


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory, load_server, give_up):
    """The address of a real HDFS: make folders of your own."""
    server = load_server("hdfs")
    try:
        with shared(run_folder(tmp_path_factory), "hdfs", lambda: server.Hdfs().start().handed_over()) as told:
            yield told["url"]
    except server.Unavailable as reason:
        give_up(f"no HDFS: {reason}")
