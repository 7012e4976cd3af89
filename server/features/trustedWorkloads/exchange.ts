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

/** Returns the required claims of a workload, by name. A token must contain these claims to match the workload. */
const claimsOf = ({ claims }: Pick<TrustedWorkload, "claims">): Readonly<Record<string, string>> =>
  JSON.parse(claims);

/**
 * Signature algorithms that use a public key. With a symmetric algorithm, an attacker could use the public key to sign
 * tokens.
 */
const ALGORITHMS = ["RS", "PS", "ES"].flatMap((family) => [256, 384, 512].map((bits) => `${family}${bits}`));
/** Maximum difference between the clocks of an issuer and the service, in seconds. */
const TOLERANCE = 60;

/** Maximum numbers and lengths of claims in an error message. */
const SHOWN_CLAIMS = 32;
const SHOWN_ITEMS = 5;
const SHOWN_VALUE = 200;

/** Returns the issuer in a token that is not verified yet. */
function statedIssuer(token: string): string {
  let issuer: unknown;
  try {
    issuer = decodeJwt(token).iss;
  } catch {
    // The error of the parser is discarded, because its message can contain part of the token.
    throw new RejectedToken("the token is malformed");
  }
  if (typeof issuer !== "string") throw new RejectedToken("the token has no issuer");
  return issuer;
}

/**
 * Verifies a token, and returns its claims. `trusting` contains the workloads of the namespace that trust the issuer of
 * the token.
 */
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
  // The tolerance applies only to the start of the token's validity, not to its end.
  if (!(exp > second && exp * 1000 <= LAST_TIME)) throw new RejectedToken("the token is expired");
  if (!(iat <= second + TOLERANCE && iat > 0)) throw new RejectedToken("the token was issued in the future");
  return { ...payload, iat, exp };
}

/** Returns the message for a token whose claims match no workload. The message contains only values from the token. */
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

/** Returns the workloads whose required claims the token contains. Each step compares the claims of one workload. */
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
 * Exchanges a token of an OpenID Connect provider for a session. The service reads the keys of an issuer only if the
 * namespace has a workload with this issuer. If several workloads match, the session belongs to the workload with the
 * highest role. If several workloads have this role, the session belongs to the first workload in alphabetical order.
 */
export const exchangeWorkloadToken: Handler<Operations["exchangeWorkloadToken"]> = async (context) => {
  const { services, body, log } = context;
  const { tenant: tenantId, token, nonce } = body;
  try {
    const issuer = statedIssuer(token);
    const trusting = await services.db.trustedWorkload.findMany({ where: { tenantId, issuer } });
    if (trusting.length === 0)
      throw new RejectedToken("no trusted workload of the namespace has the issuer of the token");
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
