"""Real servers of file systems, one of each for a whole run."""

import pytest

from tests.servers.hdfs import Hdfs
from tests.servers.s3 import ACCESS, SECRET, S3Server
from tests.suite.shared import shared_server


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    """A client of a real server of S3's protocol, and its address: make your own buckets."""
    import boto3

    with shared_server(tmp_path_factory, S3Server()) as told:
        login = {"aws_access_key_id": ACCESS, "aws_secret_access_key": SECRET}
        client = boto3.session.Session().client("s3", region_name="us-east-1", endpoint_url=told["url"], **login)
        yield client, told["url"], (ACCESS, SECRET)
        client.close()


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory):
    """The address of a real HDFS: make your own folders."""
    with shared_server(tmp_path_factory, Hdfs()) as told:
        yield told["url"]
