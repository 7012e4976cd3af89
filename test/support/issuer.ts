import { generateKeyPairSync, type KeyObject, randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { IncomingMessage, RequestListener } from "node:http";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { SignJWT } from "jose";
import Provider from "oidc-provider";
import { makeCertificate } from "./certificate.ts";
import { listenOnNewPort } from "./listening.ts";

type Claims = Readonly<Record<string, unknown>>;

/** The claim sets that the documentation of an issuer publishes. */
const recorded = (name: string): Claims =>
  JSON.parse(readFileSync(new URL(`../fixtures/claims/${name}.json`, import.meta.url), "utf8")).claims;
export const GITHUB_CLAIMS = recorded("github");
export const GITLAB_CLAIMS = recorded("gitlab");

/** A key pair of an issuer. */
export interface IssuerKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/**
 * Creates a key pair with a random id.
 * @param alg the algorithm of its signatures. Default: RS256
 */
export function newIssuerKey(alg = "RS256"): IssuerKey {
  const curve = { ES256: "P-256", ES384: "P-384", ES512: "P-521" }[alg];
  const pair =
    alg === "EdDSA"
      ? generateKeyPairSync("ed25519")
      : curve === undefined
        ? generateKeyPairSync("rsa", { modulusLength: 2048 })
        : generateKeyPairSync("ec", { namedCurve: curve });
  return { kid: randomUUID(), alg, ...pair };
}

/** Changes of a token that {@link TestIssuer.mint} creates. */
export interface MintOptions {
  /** Parameters of the header that are added or replaced; undefined removes a parameter. */
  readonly header?: Claims;
  /** The key that signs. Default: the current key of the issuer. */
  readonly key?: IssuerKey;
  /** Current time. Default: the time of this machine. */
  readonly now?: Date;
}

/** An OpenID Connect provider on this machine: the package `oidc-provider` over HTTPS, with a certificate of its own. */
export interface TestIssuer {
  /** The issuer: `https://127.0.0.1:<port>`. The service needs `GATEHOUSE_WORKLOAD_ISSUER_NETWORKS=127.0.0.0/8`. */
  readonly url: string;
  /** File of the certificate, for `NODE_EXTRA_CA_CERTS` of processes. */
  readonly caFile: string;
  readonly key: IssuerKey;
  /** The paths of all requests so far. */
  readonly requests: readonly string[];
  /**
   * Creates a signed token with any claims. Default: a random `jti`, issued now, and valid for 5 minutes.
   * @param claims claims that are added or replaced; undefined removes a claim
   */
  mint(claims: Claims, options?: MintOptions): Promise<string>;
  /** Creates a token with the claims of a job of GitHub Actions: repository `octo-org/octo-repo`, environment `prod`. */
  github(claims?: Claims, options?: MintOptions): Promise<string>;
  /** Creates a token with the claims of a job of GitLab CI: project `my-group/my-project`. */
  gitlab(claims?: Claims, options?: MintOptions): Promise<string>;
  /**
   * Returns the environment variables of a job of GitHub Actions. Each request to `ACTIONS_ID_TOKEN_REQUEST_URL` creates
   * a new token for the requested audience.
   * @param claims claims of the job's tokens that are added or replaced
   */
  githubJob(claims?: Claims): Readonly<Record<string, string>>;
  /** Replaces the keys of the issuer. */
  setKeys(...keys: readonly IssuerKey[]): void;
  /** Replaces the responses for a path; undefined restores the responses of the package. */
  answer(path: string, listener: RequestListener | undefined): void;
  /** Lets this process trust the certificate. Returns a function that restores the earlier certificates. */
  trust(): () => void;
  stop(): Promise<void>;
}

/** Path of the endpoint that creates tokens of jobs of GitHub Actions. */
const JOB_PATH = "/job-token";

/** Returns an object without the fields whose value is undefined. */
const present = (fields: Claims): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** Starts an issuer on a free port. */
export async function startIssuer(): Promise<TestIssuer> {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  const { cert, key: certificateKey } = makeCertificate(folder, "issuer");
  const requests: string[] = [];
  const answers = new Map<string, RequestListener>();
  const jobs = new Map<string, Claims>();
  let keys: readonly IssuerKey[] = [newIssuerKey()];
  let serveProvider: RequestListener;

  const server = createServer(
    { cert: readFileSync(cert), key: readFileSync(certificateKey) },
    (request, response) => {
      const path = request.url?.split("?")[0] ?? "";
      requests.push(path);
      (answers.get(path) ?? serveProvider)(request, response);
    },
  );
  const url = `https://127.0.0.1:${await listenOnNewPort(server)}`;

  const setKeys: TestIssuer["setKeys"] = (...next) => {
    keys = next;
    const jwks = keys.map(({ kid, alg, privateKey }) => ({
      ...privateKey.export({ format: "jwk" }),
      kid,
      alg,
      use: "sig",
    }));
    // The package needs the private keys, and publishes only the public keys.
    const provider = new Provider(url, {
      jwks: { keys: jwks as never },
      cookies: { keys: [randomBytes(16).toString("hex")] },
      features: { devInteractions: { enabled: false } },
      // The issuer stores nothing. Without an adapter, the package prints a warning.
      adapter: () => ({}) as never,
    });
    serveProvider = provider.callback();
  };
  setKeys(...keys);

  const current = (): IssuerKey => {
    const [first] = keys;
    if (first === undefined) throw new Error("the issuer has no key");
    return first;
  };

  const mint: TestIssuer["mint"] = (claims, { header = {}, key = current(), now = new Date() } = {}) => {
    const second = Math.floor(now.getTime() / 1000);
    const standard = { iss: url, jti: randomUUID(), iat: second, nbf: second, exp: second + 300 };
    return new SignJWT(present({ ...standard, ...claims }))
      .setProtectedHeader(present({ alg: key.alg, typ: "JWT", kid: key.kid, ...header }) as { alg: string })
      .sign(key.privateKey);
  };
  /** Returns claims of a documented token without its times, issuer and id. */
  const without = ({ iss: _iss, jti: _jti, iat: _iat, nbf: _nbf, exp: _exp, ...others }: Claims) => others;
  const github: TestIssuer["github"] = (claims, options) =>
    mint({ ...without(GITHUB_CLAIMS), ...claims }, options);

  answers.set(JOB_PATH, (request: IncomingMessage, response) => {
    const [scheme, secret = ""] = (request.headers.authorization ?? "").split(" ");
    const claims = jobs.get(secret);
    if (scheme?.toLowerCase() !== "bearer" || claims === undefined) {
      response.writeHead(401).end("the request token is missing or unknown");
      return;
    }
    const aud = new URL(request.url ?? "", url).searchParams.get("audience");
    void github({ ...(aud !== null && { aud }), ...claims }).then((value) =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ count: value.length, value })),
    );
  });

  return {
    url,
    caFile: cert,
    get key() {
      return current();
    },
    requests,
    mint,
    github,
    gitlab: (claims, options) => mint({ ...without(GITLAB_CLAIMS), ...claims }, options),
    githubJob(claims = {}) {
      const secret = randomBytes(16).toString("hex");
      jobs.set(secret, claims);
      return {
        ACTIONS_ID_TOKEN_REQUEST_URL: `${url}${JOB_PATH}?api-version=2.0`,
        ACTIONS_ID_TOKEN_REQUEST_TOKEN: secret,
      };
    },
    setKeys,
    answer(path, listener) {
      if (listener === undefined) answers.delete(path);
      else answers.set(path, listener);
    },
    trust() {
      const before = getCACertificates("default");
      setDefaultCACertificates([...before, readFileSync(cert, "utf8")]);
      return () => setDefaultCACertificates(before);
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true });
    },
  };
}
