import { createHash, randomBytes } from "node:crypto";
import { z } from "zod";
import {
  type Authorization,
  type Authorizer,
  type AuthorizerHost,
  bearer,
  isRefusal,
  requireNamespace,
} from "./authorizer.ts";
import type { Identity, ResponseOf, WorkloadIdentity } from "./clientTypes.ts";
import { defineOperation } from "./contract/index.ts";
import { type OidcSource, readClaims, readPayload, type WorkloadCredential } from "./credentials.ts";
import { contentOf } from "./environment.ts";
import {
  AuthenticationError,
  ConfigurationError,
  GatehouseError,
  RequestError,
  TransportError,
} from "./errors.ts";
import { isLoopbackHost } from "./loopback.ts";
import { sharedWhilePending } from "./promises.ts";

/** The session of a workload in one namespace. All times are from this machine's clock, in milliseconds since 1970. */
interface Session {
  readonly token: string;
  /** Time from which the client renews the session. */
  readonly renewAt: number;
  readonly endsAt: number;
  /** False if a renewal would not extend the session. */
  readonly isRenewable: boolean;
  readonly workloadId: string;
  readonly workload: WorkloadIdentity;
}

/**
 * The session of a workload in one namespace. The client renews the session when less than a third of its lifetime
 * remains. When the session can no longer be renewed, or the server refuses it, the client exchanges a new token of the
 * OpenID Connect provider. After the server has refused an exchange, the client sends another exchange only if the
 * source provides a different token.
 */
class WorkloadSession {
  readonly #tenant: string;
  readonly #source: OidcSource;
  #session: Session | undefined;
  readonly #renew = sharedWhilePending((host: AuthorizerHost) => this.#renewed(host, this.#session));
  /**
   * The token of the last exchange, and the nonce that was sent with it. With the same nonce, the server accepts the
   * same token again.
   */
  #exchanged: { readonly token: string; readonly nonce: string } | undefined;
  #refusal: AuthenticationError | undefined;
  #isAccepted = false;
  /** True if the session replaced a session that the server refused before its expiry. */
  #isEarly = false;

  constructor(tenant: string, source: OidcSource) {
    this.#tenant = tenant;
    this.#source = source;
  }

  /** Returns the current session. Concurrent calls share one renewal. */
  current(host: AuthorizerHost): Promise<Session> {
    if (this.#session && host.timing.now() < this.#session.renewAt) return Promise.resolve(this.#session);
    return this.#renew(host);
  }

  has(token: string): boolean {
    return this.#session?.token === token;
  }

  accept(): void {
    this.#isAccepted = true;
  }

  /**
   * Drops the session after the server refused it. If the server refused two sessions in a row before their expiry, and
   * never accepted the second session, keeps the session and returns false, because another exchange would not help.
   */
  drop(now: number): boolean {
    const isOver = this.#session !== undefined && this.#session.endsAt <= now;
    if (!isOver && this.#isEarly && !this.#isAccepted) return false;
    this.#isEarly = !isOver;
    this.#isAccepted = false;
    this.#session = undefined;
    return true;
  }

  secrets(): string[] {
    return [this.#session?.token, this.#exchanged?.token].filter((text) => text !== undefined);
  }

  async #renewed(host: AuthorizerHost, session: Session | undefined): Promise<Session> {
    if (!session || session.endsAt <= host.timing.now()) return this.#exchange(host);
    if (!session.isRenewable) {
      const token = await oidcToken(host, this.#source);
      return token === this.#exchanged?.token ? session : this.#exchange(host, token);
    }
    try {
      return this.#keep(host, await host.call("renewWorkloadSession", {}, bearer(session.token)));
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return this.#exchange(host);
    }
  }

  #keep(host: AuthorizerHost, body: ResponseOf<"exchangeWorkloadToken">): Session {
    requireNamespace(body.tenant, this.#tenant);
    const { token, role, actor, workload } = body;
    const [end, last] = [Date.parse(body.expiresAt), Date.parse(body.renewableUntil)];
    const now = host.timing.now();
    // The clocks of this machine and of the service can differ, so the times depend only on the lifetime of the token.
    const life = end - (readClaims(token)?.issuedAt?.getTime() ?? now);
    this.#session = {
      token,
      renewAt: now + (life * 2) / 3,
      endsAt: now + life,
      isRenewable: last - end >= 1000,
      workloadId: workload.id,
      workload: { name: workload.name, role, actor, renewableUntil: new Date(last) },
    };
    return this.#session;
  }

  async #exchange(host: AuthorizerHost, known?: string): Promise<Session> {
    // GitHub issues a different token for each request, so a new token does not indicate that the server would accept
    // it.
    if (this.#refusal && this.#source.kind === "github") throw this.#refusal;
    const token = known ?? (await oidcToken(host, this.#source));
    if (token !== this.#exchanged?.token) {
      this.#exchanged = { token, nonce: randomBytes(24).toString("base64url") };
      this.#refusal = undefined;
    }
    if (this.#refusal) throw this.#refusal;
    const body = { tenant: this.#tenant, ...this.#exchanged };
    try {
      return this.#keep(host, await host.call("exchangeWorkloadToken", { body }));
    } catch (error) {
      const isFinal = isRefusal(error) || (error instanceof RequestError && isUnsupported(error));
      if (!isFinal) throw error;
      this.#refusal = refusalOf(error as RequestError, body);
      throw this.#refusal;
    }
  }
}

/** True if the error shows that the server does not have the operation. */
const isUnsupported = ({ status }: RequestError): boolean => status === 404 || status === 405;

/**
 * Returns the error for a refused exchange. The class is always AuthenticationError, because other request errors, such
 * as a NotFoundError, refer to the requested object instead of the credential.
 */
function refusalOf(
  cause: RequestError,
  { tenant, token }: { readonly tenant: string; readonly token: string },
): AuthenticationError {
  const { serverMessage, ...details } = cause;
  if (isUnsupported(cause)) {
    const remedy = "Use an API key, a token, or a user name and password instead of GATEHOUSE_OIDC.";
    const detail = `the server does not support workload identity (${cause.status})`;
    return new AuthenticationError(detail, { ...details, remedy }, { cause });
  }
  // For a path that they do not support, other servers can answer 401 without a message.
  const other = serverMessage === undefined ? ", or does not support workload identity" : "";
  return new AuthenticationError(
    `the server refused the token of the workload${other} (${cause.status})`,
    {
      ...cause,
      remedy: `Compare the trusted workloads of namespace ${tenant} with the token: ${describe(token)}.`,
    },
    { cause },
  );
}

/**
 * The claims that errors may contain. Other claims can contain personal data, such as the e-mail address of a user.
 */
const SHOWN_CLAIMS = [
  "iss",
  "aud",
  "sub",
  "repository",
  "project_path",
  "ref",
  "ref_protected",
  "environment",
  "event_name",
  "pipeline_source",
  "job_workflow_ref",
];

/** Maximum length of a claim in an error. */
const CLAIM_LENGTH = 200;

function describe(token: string): string {
  const claims = readPayload(token);
  if (!claims) return "it is not a JSON Web Token";
  const shown = SHOWN_CLAIMS.filter((name) => Object.hasOwn(claims, name)).map(
    (name) => `${name} ${JSON.stringify(claims[name]).slice(0, CLAIM_LENGTH)}`,
  );
  const expiresAt = readClaims(token)?.expiresAt;
  if (expiresAt) shown.push(`expires at ${expiresAt.toISOString()}`);
  return shown.join(", ") || "it has no claims";
}

const githubToken = defineOperation({
  id: "githubOidcToken",
  part: "Trusted workloads",
  auth: ["none"],
  scope: "public",
  summary: "Request a token of the running job",
  method: "GET",
  path: "/",
  success: { body: z.object({ value: z.string() }) },
});

/**
 * Returns the current token of the OpenID Connect provider.
 * @throws ConfigurationError when the token file cannot be read
 * @throws AuthenticationError when GitHub issues no token
 */
async function oidcToken(host: AuthorizerHost, source: OidcSource): Promise<string> {
  if (source.kind === "token") return source.token.reveal();
  if (source.kind === "file") return contentOf(source.path, "GATEHOUSE_OIDC_TOKEN_FILE");
  const url = URL.parse(source.url);
  if (url?.protocol !== "https:" && !(url?.protocol === "http:" && isLoopbackHost(url.hostname))) {
    throw new ConfigurationError("must begin with https://", { field: ["ACTIONS_ID_TOKEN_REQUEST_URL"] });
  }
  url.searchParams.set("audience", source.audience ?? host.address);
  const secret = source.requestToken.reveal();
  let answer: { readonly value: string } | null;
  try {
    answer = await host.sendTo(url, githubToken, bearer(secret));
  } catch (cause) {
    if (!(cause instanceof RequestError) || cause instanceof TransportError) throw cause;
    const remedy = "check that the job has the permission id-token: write and is still running";
    const { serverMessage: _, ...details } = cause;
    const detail = `GitHub issued no token for the job: ${cause.detail}`;
    throw new AuthenticationError(detail, { ...details, remedy }, { cause });
  }
  const token: unknown = answer?.value;
  if (typeof token === "string" && token !== "") return token;
  throw new GatehouseError({ code: "protocol", detail: "the response of GitHub contains no token" });
}

/**
 * The sessions of all workloads of this process. The key of the map is a digest of the service, the namespace and the
 * source. All clients share the sessions, so that one exchange serves all clients.
 */
const sessions = new Map<string, WorkloadSession>();

function sharedWorkloadSession(address: string, tenant: string, source: OidcSource): WorkloadSession {
  const parts = Object.values(source).map((part) => (typeof part === "string" ? part : part.reveal()));
  const id = createHash("sha256")
    .update(JSON.stringify([address, tenant, ...parts]))
    .digest("hex");
  const session = sessions.get(id) ?? new WorkloadSession(tenant, source);
  sessions.set(id, session);
  return session;
}

/** Authorizes requests with the sessions of a workload, one for each namespace in use. */
export class WorkloadAuthorizer implements Authorizer {
  readonly caller = {};
  readonly #credential: WorkloadCredential;
  readonly #used = new Map<string, WorkloadSession>();

  constructor(credential: WorkloadCredential) {
    this.#credential = credential;
  }

  get knownTenant(): string {
    return this.#credential.tenant;
  }

  async authorize(host: AuthorizerHost, tenant?: string): Promise<Authorization> {
    return bearer((await this.#session(host, tenant)).token);
  }

  accepted(token: string): void {
    this.#holderOf(token)?.accept();
  }

  renew(host: AuthorizerHost, token: string): boolean {
    // If no session has the token, a concurrent call has already replaced it.
    return this.#holderOf(token)?.drop(host.timing.now()) ?? true;
  }

  async identity(host: AuthorizerHost, tenant = this.knownTenant): Promise<Identity> {
    const { workloadId, workload } = await this.#session(host, tenant);
    return { kind: "workload", tenant, workloadId, workload };
  }

  secrets(): string[] {
    const { source } = this.#credential;
    return [
      ...(source.kind === "github" ? [source.requestToken.reveal()] : []),
      ...(source.kind === "token" ? [source.token.reveal()] : []),
      ...[...this.#used.values()].flatMap((session) => session.secrets()),
    ];
  }

  #holderOf(token: string): WorkloadSession | undefined {
    return [...this.#used.values()].find((session) => session.has(token));
  }

  #session(host: AuthorizerHost, tenant = this.knownTenant): Promise<Session> {
    const session =
      this.#used.get(tenant) ?? sharedWorkloadSession(host.address, tenant, this.#credential.source);
    this.#used.set(tenant, session);
    return session.current(host);
  }
}
