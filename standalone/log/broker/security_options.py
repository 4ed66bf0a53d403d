"""Security options of the embedded log's listeners: Kafka's names prefixed with `embedded.log.`, as (name, type, default, doc)."""

BOOLEAN, STRING, INT, LIST, PASSWORD = "BOOLEAN", "STRING", "INT", "LIST", "PASSWORD"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZERS = ("", STANDARD_AUTHORIZER, "kafka.security.authorizer.AclAuthorizer", "StandardAuthorizer", "AclAuthorizer")
CLIENT_AUTH = ("none", "requested", "required")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
PREFIX = "embedded.log."
_STORE = "By the names, and in the formats, of Kafka's clients: JKS, PKCS12 or PEM."

SECURITY_OPTIONS = (
    (
        "advertised.listeners",
        STRING,
        None,
        "host:port that clients are told to connect to, where it is another than the listener's: behind a container's port, a tunnel or "
        "a proxy. With multiple listeners NAME://host:port for each of them that needs one, separated by commas. Default: the listener's "
        "address, or, if it listens on all addresses, the one that the client used.",
    ),
    (
        "listener.security.protocol.map",
        STRING,
        "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "Which protocol a listener's name stands for, for names of your own: two listeners may speak the same one.",
    ),
    ("ssl.keystore.type", STRING, "JKS", f"Format of the key store of listeners that speak TLS. {_STORE}"),
    ("ssl.keystore.location", STRING, None, "File of the key and the certificate that TLS listeners show."),
    ("ssl.keystore.password", PASSWORD, None, "Password of the key store."),
    ("ssl.keystore.key", PASSWORD, None, "The key as PEM text, in place of a file."),
    ("ssl.keystore.certificate.chain", STRING, None, "The certificate and its chain as PEM text, in place of a file."),
    ("ssl.key.password", PASSWORD, None, "Password of the key, where it has one of its own."),
    ("ssl.truststore.type", STRING, "JKS", f"Format of the trust store by which clients' certificates are judged. {_STORE}"),
    ("ssl.truststore.location", STRING, None, "File of the authorities that sign clients' certificates."),
    ("ssl.truststore.password", PASSWORD, None, "Password of the trust store."),
    ("ssl.truststore.certificates", STRING, None, "The authorities as PEM text, in place of a file."),
    (
        "ssl.client.auth",
        STRING,
        "none",
        "Whether clients show a certificate: none; requested, if they have one; required. Its subject is then who they are, where they do "
        "not log in besides.",
    ),
    (
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        "What of a certificate's subject names the client: RULE:pattern/replacement/[LU], separated by commas, or DEFAULT: all of it.",
    ),
    ("ssl.enabled.protocols", LIST, "TLSv1.2,TLSv1.3", "Versions of TLS that are spoken."),
    ("ssl.cipher.suites", LIST, "", "Cipher suites by Java's or OpenSSL's names. Default: OpenSSL's choice."),
    (
        "sasl.enabled.mechanisms",
        LIST,
        "",
        f"Logins that SASL listeners take: {', '.join(MECHANISMS)}. Default: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, and OAUTHBEARER where "
        "its keys are set, GSSAPI where its keytab is.",
    ),
    (
        "sasl.jaas.config",
        PASSWORD,
        None,
        'Users that are there from the start, as Java\'s PlainLoginModule takes them: `...PlainLoginModule required user_ann="her password" '
        'user_bob="...";`. They log in by PLAIN and by SCRAM. More users, for SCRAM alone, are made by kafka-configs.',
    ),
    (
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        "Where the keys are by which tokens are verified: an http(s) or file address of a JSON web key set. OAUTHBEARER needs it.",
    ),
    ("sasl.oauthbearer.expected.audience", LIST, "", "A token must be for one of these audiences (`aud`). Default: any."),
    ("sasl.oauthbearer.expected.issuer", STRING, None, "Who must have issued a token (`iss`). Default: anyone whose key is in the set."),
    ("sasl.oauthbearer.sub.claim.name", STRING, "sub", "The claim of a token that names the client."),
    (
        "gssapi.sasl.jaas.config",
        PASSWORD,
        None,
        "The log's own principal and its keytab, for logins by Kerberos (GSSAPI): `com.sun.security.auth.module.Krb5LoginModule required "
        'keyTab="/etc/kafka.keytab" principal="kafka/host.example.com@EXAMPLE.COM";`. Wants the extra `kerberos`.',
    ),
    (
        "sasl.kerberos.principal.to.local.rules",
        STRING,
        "DEFAULT",
        "What of a principal names the client: rules as Kafka writes them, separated by commas, or DEFAULT: its first part, in "
        "the log's own realm.",
    ),
    ("sasl.oauthbearer.clock.skew.seconds", INT, 30, "By how much the clock of who issues tokens may differ from ours."),
    (
        "authorizer.class.name",
        STRING,
        "",
        f"{STANDARD_AUTHORIZER}: clients may do what ACLs allow, which Kafka's own tools manage (kafka-acls). Default: everyone may do everything.",
    ),
    ("super.users", STRING, "", "Those who may do everything, separated by semicolons: `User:ann;User:CN=admin,O=us`."),
    (
        "allow.everyone.if.no.acl.found",
        BOOLEAN,
        False,
        "Whether everyone may do everything with a topic, group or transactional id that no ACL speaks of.",
    ),
)
