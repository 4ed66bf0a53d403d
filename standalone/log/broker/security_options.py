"""Security options of the embedded log's listeners: Kafka's names prefixed with `embedded.log.`, as (name, type, default, doc)."""

BOOLEAN, STRING, INT, LIST, PASSWORD = "BOOLEAN", "STRING", "INT", "LIST", "PASSWORD"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZERS = ("", STANDARD_AUTHORIZER, "kafka.security.authorizer.AclAuthorizer", "StandardAuthorizer", "AclAuthorizer")
CLIENT_AUTH = ("none", "requested", "required")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
PREFIX = "embedded.log."
_STORE = "As in Kafka's clients: JKS, PKCS12 or PEM."

SECURITY_OPTIONS = (
    (
        "advertised.listeners",
        STRING,
        None,
        "host:port that clients connect to, if it differs from the listener's: behind a container's port, a tunnel or "
        "a proxy. With multiple listeners: NAME://host:port for each that needs one, separated by commas. Default: the listener's "
        "address, or, if it listens on all addresses, the one that the client used.",
    ),
    (
        "listener.security.protocol.map",
        STRING,
        "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "Security protocol of each listener name. Custom names allow multiple listeners with one protocol.",
    ),
    ("ssl.keystore.type", STRING, "JKS", f"Format of the key store of TLS listeners. {_STORE}"),
    ("ssl.keystore.location", STRING, None, "Path of the key store with the key and certificate of TLS listeners."),
    ("ssl.keystore.password", PASSWORD, None, "Password of the key store."),
    ("ssl.keystore.key", PASSWORD, None, "The key as PEM text, instead of a file."),
    ("ssl.keystore.certificate.chain", STRING, None, "The certificate chain as PEM text, instead of a file."),
    ("ssl.key.password", PASSWORD, None, "Password of the private key, if it differs from the key store's."),
    ("ssl.truststore.type", STRING, "JKS", f"Format of the trust store for clients' certificates. {_STORE}"),
    ("ssl.truststore.location", STRING, None, "Path of the trust store with the CAs of clients' certificates."),
    ("ssl.truststore.password", PASSWORD, None, "Password of the trust store."),
    ("ssl.truststore.certificates", STRING, None, "The CA certificates as PEM text, instead of a file."),
    (
        "ssl.client.auth",
        STRING,
        "none",
        "Whether clients present a certificate: none; requested (optional); required. Its subject is the principal of clients that do "
        "not also log in by SASL.",
    ),
    (
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        "How to map a certificate's subject to a principal: RULE:pattern/replacement/[LU], separated by commas, or DEFAULT: all of it.",
    ),
    ("ssl.enabled.protocols", LIST, "TLSv1.2,TLSv1.3", "Enabled TLS versions."),
    ("ssl.cipher.suites", LIST, "", "Cipher suites by Java's or OpenSSL's names. Default: OpenSSL's choice."),
    (
        "sasl.enabled.mechanisms",
        LIST,
        "",
        f"SASL mechanisms: {', '.join(MECHANISMS)}. Default: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, and OAUTHBEARER if "
        "its keys are set, GSSAPI if its keytab is.",
    ),
    (
        "sasl.jaas.config",
        PASSWORD,
        None,
        'Initial users, in the format of Java\'s PlainLoginModule: `...PlainLoginModule required user_ann="her password" '
        'user_bob="...";`. They can log in by PLAIN and SCRAM. Create more users, for SCRAM only, with kafka-configs.',
    ),
    (
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        "http(s) or file URL of the JSON web key set for verifying tokens. Required for OAUTHBEARER.",
    ),
    ("sasl.oauthbearer.expected.audience", LIST, "", "Accepted audiences of a token (`aud`). Default: any."),
    ("sasl.oauthbearer.expected.issuer", STRING, None, "Required issuer of a token (`iss`). Default: any issuer with a key in the set."),
    ("sasl.oauthbearer.sub.claim.name", STRING, "sub", "The claim of a token that contains the principal."),
    (
        "gssapi.sasl.jaas.config",
        PASSWORD,
        None,
        "The log's principal and keytab, for Kerberos (GSSAPI): `com.sun.security.auth.module.Krb5LoginModule required "
        'keyTab="/etc/kafka.keytab" principal="kafka/host.example.com@EXAMPLE.COM";`. Requires the extra `kerberos`.',
    ),
    (
        "sasl.kerberos.principal.to.local.rules",
        STRING,
        "DEFAULT",
        "How to map a Kerberos principal to a user: Kafka's rules, separated by commas, or DEFAULT: its first part, in "
        "the log's own realm.",
    ),
    ("sasl.oauthbearer.clock.skew.seconds", INT, 30, "Allowed difference to the clock of the token's issuer."),
    (
        "authorizer.class.name",
        STRING,
        "",
        f"{STANDARD_AUTHORIZER}: permissions by ACLs, which Kafka's tools manage (kafka-acls). Default: everyone may do everything.",
    ),
    ("super.users", STRING, "", "Users with all permissions, separated by semicolons: `User:ann;User:CN=admin,O=us`."),
    (
        "allow.everyone.if.no.acl.found",
        BOOLEAN,
        False,
        "Whether everyone has all permissions on topics, groups and transactional ids without ACLs.",
    ),
)
