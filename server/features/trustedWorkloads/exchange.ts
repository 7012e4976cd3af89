import { type Operations, type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";
import { TokenClaims } from "@gatehouse-access/sdk/policy";
import { decodeJwt, jwtVerify } from "jose";
import type { Decision } from "../../DecisionTurns.ts";
import type { TrustedWorkload } from "../../db/generated/sqlite/client.ts";
import { BusyError } from "../../errors.ts";
import { lastEnd } from "../../http/access/authenticate.ts";
import type { Handler } from "../../http/handler.ts";
import type { Services } from "../../services.ts";
import { LAST_TIME } from "../fields.ts";
import { actorOf, printable } from "./actor.ts";
import { workloadSession } from "./session.ts";
import { RejectedToken, useOnce } from "./tokenUses.ts";

/** Returns the required claims of a workload, by name. */
const claimsOf = ({ claims }: Pick<TrustedWorkload, "claims">): Readonly<Record<string, string>> =>
  JSON.parse(claims);

/** Signature algorithms with a public key. With a symmetric algorithm, an attacker could sign with the public key. */
const ALGORITHMS = ["RS", "PS", "ES"].flatMap((family) => [256, 384, 512].map((bits) => `${family}${bits}`));
/** Maximum difference in seconds between the clocks of an issuer and of the service. */
const TOLERANCE = 60;

/** Maximum numbers and lengths in the message about the claims of a token. */
const SHOWN_CLAIMS = 32;
const SHOWN_ITEMS = 5;
const SHOWN_VALUE = 200;

/** Returns the issuer that an unverified token states. */
function statedIssuer(token: string): string {
  let issuer: unknown;
  try {
    issuer = decodeJwt(token).iss;
  } catch {
    // The service drops the error of the parser, because its message can contain a part of the token.
    throw new RejectedToken("the token is malformed");
  }
  if (typeof issuer !== "string") throw new RejectedToken("the token has no issuer");
  return issuer;
}

/** Verifies a token for the workloads of a namespace that trust its issuer, and returns its claims. */
async function verify(
  { db, issuerKeys, now }: Services,
  tenant: string,
  token: string,
  issuer: string,
  trusting: readonly TrustedWorkload[],
) {
  const ownerOf = async () => {
    const namespace = await db.namespace.findUnique({
      where: { tenantId: tenant },
      select: { ownerId: true },
    });
    if (namespace === null) throw new RejectedToken("the namespace was deleted");
    return namespace.ownerId;
  };
  const second = Math.floor(now().getTime() / 1000);
  const { payload, protectedHeader } = await jwtVerify(token, issuerKeys.finder(issuer, ownerOf), {
    algorithms: [...ALGORITHMS, "EdDSA", "Ed25519"],
    issuer,
    audience: trusting.map(({ audience }) => audience),
    requiredClaims: ["exp", "iat"],
    currentDate: now(),
    clockTolerance: TOLERANCE,
  }).catch((error: unknown) => {
    if (error instanceof BusyError || error instanceof RejectedToken) throw error;
    throw new RejectedToken(
      error instanceof Error ? printable(error.message, SHOWN_VALUE) : "the token cannot be verified",
    );
  });
  const { typ } = protectedHeader;
  const isJwt = typ === undefined || (typeof typ === "string" && typ.toUpperCase() === "JWT");
  if (!isJwt) throw new RejectedToken("the token has a different type than JWT");
  const { iat = Number.NaN, exp = Number.NaN } = payload;
  // The tolerance is only for the start of the token's validity.
  if (!(exp > second && exp * 1000 <= LAST_TIME)) throw new RejectedToken("the token is expired");
  if (!(iat <= second + TOLERANCE && iat > 0)) throw new RejectedToken("the token was issued in the future");
  return { ...payload, iat, exp };
}

/** Returns the message for a token whose claims match no workload. The message has only values of the token. */
function describeClaims(workloads: readonly TrustedWorkload[], claims: TokenClaims): string {
  const names = [...new Set(workloads.flatMap((workload) => Object.keys(claimsOf(workload))))].sort();
  const values = names.slice(0, SHOWN_CLAIMS).map((name) => {
    const shown = [...claims.texts(name)].slice(0, SHOWN_ITEMS);
    const texts = shown.map((text) => JSON.stringify(printable(text, SHOWN_VALUE)));
    return `${name}: ${texts.length === 0 ? "absent" : texts.join(" and ")}`;
  });
  return (
    "the claims of the token match no trusted workload of the namespace. " +
    `The token has these values of the required claims: ${values.join(", ")}. Change the claims of the workload, or ` +
    "run a job whose token has the required claims"
  );
}

/** Returns the workloads whose required claims a token has. A step compares the claims of one workload. */
export function* matchingWorkloads(
  workloads: readonly TrustedWorkload[],
  claims: TokenClaims,
): Decision<TrustedWorkload[]> {
  const matching: TrustedWorkload[] = [];
  for (const workload of workloads) {
    if (claims.unmatched(claimsOf(workload)) === undefined) matching.push(workload);
    yield;
  }
  return matching;
}

const strongest = (left: TrustedWorkload, right: TrustedWorkload): number => {
  if (left.role === right.role) return left.name < right.name ? -1 : 1;
  return roleAtLeast(left.role as Role, right.role as Role) ? -1 : 1;
};

/**
 * Exchanges a token of an OpenID Connect provider for a session. The namespace must have a workload with the token's
 * issuer before the service reads keys of the issuer. If several workloads match, the session is of the workload with the
 * highest role, and among equal roles of the first name.
 */
export const exchangeWorkloadToken: Handler<Operations["exchangeWorkloadToken"]> = async (context) => {
  const { services, body, log } = context;
  const { tenant: tenantId, token, nonce } = body;
  try {
    const issuer = statedIssuer(token);
    const trusting = await services.db.trustedWorkload.findMany({ where: { tenantId, issuer } });
    if (trusting.length === 0)
      throw new RejectedToken("no trusted workload of the namespace accepts the issuer of the token");
    const claims = await verify(services, tenantId, token, issuer, trusting);
    const intended = trusting.filter(({ audience }) => [claims.aud].flat().includes(audience));
    const tokenClaims = new TokenClaims(claims);
    const matching = await services.decisions.run(tenantId, matchingWorkloads(intended, tokenClaims));
    const [workload] = matching.sort(strongest);
    if (workload === undefined) {
      throw new RejectedToken("the claims match no workload", describeClaims(intended, tokenClaims));
    }
    const startedAt = new Date(claims.iat * 1000);
    if (lastEnd(workload, startedAt) <= services.now()) {
      throw new RejectedToken(
        "the token is older than max_session_minutes",
        "the token was issued before the longest session of the trusted workload. Request a new token, or increase " +
          "max_session_minutes",
      );
    }
    if (workload.singleUse) await useOnce(services, workload, claims, nonce);
    const actor = actorOf(workload, tokenClaims);
    log.info({ tenant: tenantId, workload: workload.id, actor }, "a workload exchanged a token");
    return await workloadSession(services, workload, actor, startedAt);
  } catch (error) {
    if (error instanceof RejectedToken) {
      log.info({ tenant: tenantId, reason: error.reason }, "the token of a workload is rejected");
    }
    throw error;
  }
};
