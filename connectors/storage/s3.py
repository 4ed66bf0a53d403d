"""S3 and compatible stores, by boto3: objects are put in one request or in parts, if none exists."""

import base64
import errno
import hashlib

from standalone import ConnectError, RetriableError

FIRST, LAST, COUNT = "connect-first-offset", "connect-last-offset", "connect-record-count"
_TAKEN = ("PreconditionFailed", "412")
_FOR_GOOD = {
    "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "NoSuchBucket", "InvalidBucketName", "KMS.NotFoundException", "InvalidArgument",
    "AuthorizationHeaderMalformed", "PermanentRedirect", "InvalidRequest", "MalformedXML", "NotImplemented", "AccountProblem", "AllAccessDisabled",
}  # fmt: skip


class S3Store:
    spools_here = False

    def __init__(self, values):
        self._values = values
        self.bucket = values["s3.bucket.name"]
        self.name = f"s3://{self.bucket}"
        self._client = client_of(values)
        self._part_bytes = values["s3.part.size"]
        self._more = _more(values)
        self._customer_key = {name: item for name, item in self._more.items() if name.startswith("SSECustomer")}

    def close(self):
        self._client.close()

    def put(self, key, spool, closed, is_conditional):
        """Put an object; return False if one with that key already exists."""
        metadata = {FIRST: str(closed.first), LAST: str(closed.last), COUNT: str(closed.count)}
        condition = {"IfNoneMatch": "*"} if is_conditional else {}
        try:
            if len(spool) <= self._part_bytes:
                self._put_whole(key, b"".join(spool.chunks()), metadata, condition)
            else:
                self._put_parts(key, spool, metadata, condition)
        except self._client.exceptions.ClientError as error:
            if condition and _code(error) in _TAKEN:
                return False
            raise self.failed(f"put {key}", error) from error
        except _transport_errors() as error:
            raise self.failed(f"put {key}", error) from error
        self._tag(key, closed)
        return True

    def _put_whole(self, key, data, metadata, condition):
        digest = {}
        if self._values["s3.send.digest"]:
            digest["ContentMD5"] = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        self._client.put_object(Bucket=self.bucket, Key=key, Body=data, Metadata=metadata, **digest, **condition, **self._more)

    def _put_parts(self, key, spool, metadata, condition):
        client = self._client
        made = client.create_multipart_upload(Bucket=self.bucket, Key=key, Metadata=metadata, **self._more)
        place = {"Bucket": self.bucket, "Key": key, "UploadId": made["UploadId"]}
        try:
            parts = []
            for number, data in enumerate(_of_size(spool.chunks(), self._part_bytes), 1):
                done = client.upload_part(**place, PartNumber=number, Body=data, **self._customer_key)
                parts.append({"PartNumber": number, "ETag": done["ETag"]})
            client.complete_multipart_upload(**place, MultipartUpload={"Parts": parts}, **condition, **self._customer_key)
        except BaseException:
            try:
                client.abort_multipart_upload(**place)
            except Exception:  # the original error is raised; the bucket's rules clean up unfinished uploads
                pass
            raise

    def _tag(self, key, closed):
        if not self._values["s3.object.tagging"]:
            return
        tags = {"startOffset": str(closed.first), "endOffset": str(closed.last), "recordCount": str(closed.count)}
        tags.update(pair.split(":", 1) for pair in self._values["s3.object.tagging.key.value.pairs"])
        try:
            tag_set = [{"Key": name, "Value": value} for name, value in tags.items()]
            self._client.put_object_tagging(Bucket=self.bucket, Key=key, Tagging={"TagSet": tag_set})
        except (self._client.exceptions.ClientError, *_transport_errors()) as error:
            if self._values["s3.object.behavior.on.tagging.error"].lower() == "fail":
                raise self.failed(f"tag {key}", error) from error

    def last_offset(self, key):
        """Return the last offset in an object's metadata; None if there is no such object or metadata."""
        try:
            told = self._client.head_object(Bucket=self.bucket, Key=key, **self._customer_key)["Metadata"].get(LAST)
        except self._client.exceptions.ClientError as error:
            if _code(error) in ("404", "NoSuchKey", "NotFound"):
                return None
            raise self.failed(f"look at {key}", error) from error
        except _transport_errors() as error:
            raise self.failed(f"look at {key}", error) from error
        return int(told) if told is not None and told.isdecimal() else None

    def must_be_there(self):
        """Raise ConnectError unless the bucket is usable."""
        try:
            self._client.head_bucket(Bucket=self.bucket)
        except (self._client.exceptions.ClientError, *_transport_errors()) as error:
            raise self.failed("use the bucket", error) from error

    def failed(self, what, error):
        """Return the error for a user: retriable or permanent."""
        code = _code(error)
        text = f"S3Sink cannot {what} in bucket '{self.bucket}': {error}. "
        if code in _FOR_GOOD or code in ("403", "404", "301"):
            return ConnectError(text + "Check s3.bucket.name, s3.region, store.url and the credentials, then restart the task: nothing is lost.")
        return RetriableError(text + "It is retried; nothing is lost.")

    def wrong(self, what, error):
        """Return the error of a local spool."""
        kind = ConnectError if error.errno in (errno.EACCES, errno.EROFS) else RetriableError
        return kind(f"{what}: local spool files failed: {error.strerror or error} (errno {error.errno}).")


def client_of(values):
    import boto3
    from botocore.config import Config

    secret, access = values["aws.secret.access.key"], values["aws.access.key.id"]
    proxy = _proxy(values)
    config = Config(
        retries={"max_attempts": values["s3.part.retries"], "mode": "standard"}, max_pool_connections=32,
        proxies={"http": proxy, "https": proxy} if proxy else None,
        s3={"addressing_style": "path" if values["s3.path.style.access.enabled"] else "virtual", "use_accelerate_endpoint": values["s3.wan.mode"]},
        # Send checksums that other stores do not know only if required.
        request_checksum_calculation="when_required", response_checksum_validation="when_required",
    )  # fmt: skip
    return boto3.session.Session().client(
        "s3", region_name=values["s3.region"], endpoint_url=values["store.url"] or None, config=config,
        aws_access_key_id=access or None, aws_secret_access_key=secret.value if secret and access else None,
    )  # fmt: skip


def _proxy(values):
    url, user, password = values["s3.proxy.url"], values["s3.proxy.user"], values["s3.proxy.password"]
    if not url or not user:
        return url
    from urllib.parse import quote

    scheme, _, place = url.partition("://")
    return f"{scheme}://{quote(user, safe='')}:{quote(password.value if password else '', safe='')}@{place}"


def _more(values):
    """Return parameters of every request that creates an object."""
    more = {}
    if values["s3.acl.canned"]:
        more["ACL"] = values["s3.acl.canned"]
    kind, customer = values["s3.ssea.name"], values["s3.sse.customer.key"]
    if customer and customer.value:
        more["SSECustomerAlgorithm"], more["SSECustomerKey"] = kind or "AES256", base64.b64decode(customer.value)
    elif kind:
        more["ServerSideEncryption"] = kind
        if values["s3.sse.kms.key.id"]:
            more["SSEKMSKeyId"] = values["s3.sse.kms.key.id"]
    return more


def _code(error):
    return getattr(error, "response", {}).get("Error", {}).get("Code", "")


def _transport_errors():
    from botocore.exceptions import BotoCoreError

    return (BotoCoreError,)


def _of_size(chunks, size):
    """Rechunk the bytes to pieces of exactly that size, except the last."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        while len(held) >= size:
            yield bytes(held[:size])
            del held[:size]
    if held:
        yield bytes(held)
