// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts of mutants are parts of the sources

import { type Mutant, mutantsOf } from "./mutant.ts";

const FEATURES = "test/server/features";
const HTTP = "test/server/http";

/** The guards of the service: authentication, authorization, tenants, lockouts, limits, and logins to devices. */
export const serverMutants: readonly Mutant[] = [
  ...mutantsOf(
    "server/http/access/authorize.ts",
    [`${FEATURES}/trustedWorkloads.test.ts`],
    [
      {
        guard: "An operation accepts only the kinds of credentials in its contract.",
        find: "if (!acceptedCredentials(operation).includes(kindOf(caller))) {",
        replace: "if (acceptedCredentials(operation).length === 0) {",
        name: "no caller gives a workload",
      },
      {
        guard: "An operation needs its minimum role.",
        find: "operation.minRole === null || !roleAtLeast(member.role, operation.minRole)",
        replace: "operation.minRole === null",
        name: "no caller gives a workload",
      },
    ],
  ),
  ...mutantsOf(
    "server/http/access/authorize.ts",
    [`${HTTP}/matrixTenants.test.ts`],
    [
      {
        guard: "A user who is not a member of a namespace has no role in it.",
        find: 'if (role === null) throw await otherNamespace(services, tenant, "not a member of the namespace");',
        replace: 'if (role === null) return { caller, tenant, role: "observer" };',
        name: "rejects callers of another namespace",
      },
    ],
  ),
  ...mutantsOf(
    "server/http/access/authenticate.ts",
    [`${FEATURES}/apiKeys.test.ts`],
    [
      {
        guard: "An expired API key is refused.",
        find: "if (!key || expired) throw",
        replace: "if (!key) throw",
        name: "accepts a key until it expires",
      },
    ],
  ),
  ...mutantsOf(
    "server/http/access/authenticate.ts",
    [`${FEATURES}/users.test.ts`],
    [
      {
        guard: "A new password ends the other logins of the user.",
        find: "const isKept = tokenVersion !== version;",
        replace: "const isKept = tokenVersion < 0;",
        name: "voids the user's other tokens",
      },
    ],
  ),
  ...mutantsOf(
    "server/http/access/authenticate.ts",
    [`${HTTP}/access.test.ts`],
    [
      {
        guard: "A removed member is refused.",
        find: 'if (present === undefined || (tenant !== "" && present.role === null)) throw',
        replace: "if (present === undefined) throw",
        name: "rejects a removed member's token",
      },
    ],
  ),
  ...mutantsOf(
    "server/http/access/authenticate.ts",
    [`${FEATURES}/users.test.ts`],
    [
      {
        guard: "An invited user has no role before the acceptance.",
        find: 'const role = row.status === "accepted" ? (row.role as Role) : null;',
        replace: "const role = row.role as Role | null;",
        name: "is empty while the membership is pending",
      },
    ],
  ),
  ...mutantsOf(
    "server/http/access/authenticate.ts",
    [`${FEATURES}/trustedWorkloads.test.ts`],
    [
      {
        guard: "The session of a workload ends when its issuer, audience or claims change.",
        find: "if (workload === null || rulesDigest(workload) !== rules) throw",
        replace: "if (workload === null) throw",
        name: "ends when the workload is deleted or its claims change",
      },
      {
        guard: "A shorter maximum ends the open sessions of a workload.",
        find: "if (lastEnd(workload, startedAt) <= services.now()) throw",
        replace: "if (startedAt > services.now()) throw",
        name: "ends when an administrator shortens",
      },
    ],
  ),
  ...mutantsOf(
    "server/http/access/authenticate.ts",
    [`${FEATURES}/devices.test.ts`],
    [
      {
        guard: "A removed device is refused.",
        find: 'if (!device || device.status === "removed") throw',
        replace: "if (!device) throw",
        name: "the token of a removed device is void",
      },
    ],
  ),
  ...mutantsOf(
    "server/http/access/authenticate.ts",
    [`${FEATURES}/deviceProof.test.ts`],
    [
      {
        guard: "A namespace can require a proof of the device's private key.",
        find: 'if (device.deviceProof === "required" && !proven) throw',
        replace: 'if (device.deviceProof === "" && !proven) throw',
        name: "refuses devices without proofs",
      },
      {
        guard: "The token of an earlier enrollment is refused.",
        find: "> enrolledAt.getTime()) throw",
        replace: "> enrolledAt.getTime() + 1e15) throw",
        name: "voids a deleted device's token",
      },
    ],
  ),
  ...mutantsOf(
    "server/http/access/membership.ts",
    [`${FEATURES}/accessEnds.test.ts`],
    [
      {
        guard: "A membership ends at its end.",
        find: '"Member"."accessExpiresAt" > ${at})`;',
        replace: '"Member"."accessExpiresAt" <= ${at} OR "Member"."accessExpiresAt" > ${at})`;',
        name: "has no access to the API",
      },
    ],
  ),
  ...mutantsOf(
    "server/http/access/tokens.ts",
    [`${HTTP}/verifiedTokens.test.ts`],
    [
      {
        guard: "A cached token expires.",
        find: "second < known.expires ? known.claims",
        replace: "known.expires > 0 ? known.claims",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/trustedWorkloads/exchange.ts",
    [`${FEATURES}/trustedWorkloads.test.ts`],
    [
      {
        guard: "The token of a workload has the audience of this workload.",
        find: "const intended = trusting.filter(({ audience }) => [claims.aud].flat().includes(audience));",
        replace: "const intended = trusting;",
        name: "selects the workload with the highest role",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/trustedWorkloads/exchange.ts",
    [`${FEATURES}/workloadAttacks.test.ts`],
    [
      {
        guard: "An expired token of a workload is refused.",
        find: "if (!(exp > second && exp * 1000 <= LAST_TIME))",
        replace: "if (!(exp * 1000 <= LAST_TIME))",
        name: "rejects each token of the table",
      },
      {
        guard: "A token of a workload from the future is refused.",
        find: "if (!(iat <= second + TOLERANCE && iat > 0))",
        replace: "if (!(iat > 0))",
        name: "rejects each token of the table",
      },
      {
        guard: "A token of another type than JWT is refused.",
        find: "if (!isJwt) throw",
        replace: "if (!isJwt && typ === null) throw",
        name: "rejects each token of the table",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/trustedWorkloads/exchange.ts",
    [`${FEATURES}/trustedWorkloads.test.ts`],
    [
      {
        guard: "The token of a workload has its required claims.",
        find: "if (claims.unmatched(claimsOf(workload)) === undefined) matching.push(workload);",
        replace: "matching.push(workload);",
        name: "lists the token's values of required claims",
      },
      {
        guard: "A token that is older than the longest session is refused.",
        find: "if (lastEnd(workload, startedAt) <= services.now()) {",
        replace: "if (startedAt > services.now()) {",
        name: "older than the longest session",
      },
      {
        guard: "A token with single use is exchanged once.",
        find: "if (workload.singleUse) await useOnce(services, workload, claims, nonce);",
        replace: "if (workload.singleUse) useOnce;",
        name: "is exchanged once, and again only with the same nonce",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/trustedWorkloads/tokenUses.ts",
    [`${FEATURES}/trustedWorkloads.test.ts`],
    [
      {
        guard: "A repeated exchange needs the nonce of the first exchange.",
        find: "earlier?.nonceDigest === nonceDigest &&",
        replace: "earlier?.nonceDigest !== undefined &&",
        name: "is exchanged once, and again only with the same nonce",
      },
      {
        guard: "A repeated exchange needs the workload of the first exchange.",
        find: "&& earlier.workloadId === workloadId;",
        replace: ";",
        name: "is exchanged by one namespace only",
      },
      {
        guard: "The token of a workload with single use needs the claim jti.",
        find: 'if (typeof jti !== "string" || jti === "") {',
        replace: 'if (typeof jti !== "string") {',
        name: "needs the claim jti",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/trustedWorkloads/session.ts",
    [`${FEATURES}/trustedWorkloads.test.ts`],
    [
      {
        guard: "A session of a workload is renewed only with the same rules.",
        find: "const isCurrent = row !== null && rulesDigest(row) === rules;",
        replace: "const isCurrent = row !== null;",
        name: "is not renewed if the claims change",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/trustedWorkloads/issuerDocuments.ts",
    [`${FEATURES}/workloadAttacks.test.ts`],
    [
      {
        guard: "The service reads no document of an issuer with a private address.",
        find: "if (isIP(host) !== 0 && !isAllowed(host)) throw refusal();",
        replace: "",
        name: "is refused if it is private",
      },
      {
        guard: "Each address of an issuer's name is public.",
        find: "!addresses.every(({ address }) => isAllowed(address))",
        replace: "!addresses.some(({ address }) => isAllowed(address))",
        name: "is refused if one of several addresses",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/users/login.ts",
    [`${FEATURES}/login.test.ts`],
    [
      {
        guard: "A login needs the correct password.",
        find: "if (!user || !correct) {",
        replace: "if (!user) {",
        name: "answer 401 twice, then lock",
      },
      {
        guard: "An unconfirmed account admits no login.",
        find: 'if (user.status !== "confirmed") throw',
        replace: 'if (user.status === "") throw',
        name: "answers 403 to an unconfirmed user",
      },
      {
        guard: "Failed logins lock the account.",
        find: "const locked = await countFailure(services, key);",
        replace: "const locked = await lockEnd(services, key);",
        name: "answer 401 twice, then lock",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/users/mfa/mfaChallenge.ts",
    [`${FEATURES}/mfa.test.ts`],
    [
      {
        guard: "A code of the second factor is used once.",
        find: "return count === 1;",
        replace: "return count <= 1;",
        name: "accepts a code once, and no older code",
      },
      {
        guard: "Wrong codes lock the second factor.",
        find: "if (known && attempts >= ATTEMPTS) throw lockedOut(known.expiresAt);",
        replace: "",
        name: "limits guesses",
      },
      {
        guard: "The token of a second factor is used once.",
        find: "return (await tx.mfaChallenge.deleteMany({ where: { digest } })).count > 0;",
        replace: "return (await tx.mfaChallenge.count({ where: { digest } })) > 0;",
        name: "accepts a token once in concurrent requests",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/users/mails/mailTokens.ts",
    [`${FEATURES}/accounts.test.ts`],
    [
      {
        guard: "A mailed link expires.",
        find: "expiresAt: { gt: services.now() },",
        replace: "",
        name: "tokens work for 24 hours",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/devices/deviceProof.ts",
    [`${FEATURES}/deviceProof.test.ts`],
    [
      {
        guard: "A proof has a challenge of this service.",
        find: "if (!isSameSecret(mark, services.sealer.mark(`${end}.${id}`, PURPOSE))) return false;",
        replace: "if (mark === undefined) return isSameSecret(end, id);",
        name: "requires a challenge of the service",
      },
      {
        guard: "A challenge expires.",
        find: "return services.now().getTime() < Number(end);",
        replace: "return Number(end) > 0;",
        name: "requires a challenge of the service",
      },
      {
        guard: "The private key of the device signs the challenge.",
        find: 'return verify("sha256", text, key, signature);',
        replace: 'return verify("sha256", text, key, signature) || signature.length > 0;',
        name: "requires a challenge of the service",
      },
    ],
  ),
  ...mutantsOf(
    "server/changes/lockoutGuard.ts",
    [`${FEATURES}/lockoutGuard.test.ts`],
    [
      {
        guard: "The lockout guard counts no invited administrators.",
        find: `AND "Member"."status" = 'accepted' AND`,
        replace: "AND",
        name: "if the other administrator",
      },
      {
        guard: "The lockout guard counts no unconfirmed users.",
        find: `AND "User"."status" = 'confirmed'`,
        replace: "",
        name: "removal and demotion by a workload",
      },
      {
        guard: "The lockout guard counts only administrators.",
        find: `"Member"."role" = 'administrator'`,
        replace: `"Member"."role" <> 'owner'`,
        name: "if the other administrator",
      },
      {
        guard: "The lockout guard counts no ended memberships.",
        find: "AND ${membershipLasts(services.accessTime())}`,",
        replace: "AND (1 = 1 OR ${membershipLasts(services.accessTime())})`,",
        name: "if the other administrator",
      },
      {
        guard: "A guarded write does not shorten the caller's access.",
        find: 'if (after.end < before.end) throw refusal("caller-shortened");',
        replace: "",
        name: "refuses a write that locks out the calling user",
      },
      {
        guard: "A guarded write does not end the caller's access.",
        find: 'throw refusal("caller-removed");\n      throw error;',
        replace: "return identity;\n      throw error;",
        name: "refuses a write that locks out the calling user",
      },
      {
        guard: "A guarded write leaves an administrator.",
        find: "after.administratorsUntil >= before.administratorsUntil) return;",
        replace: "after.administratorsUntil <= before.administratorsUntil) return;",
        name: "removal and demotion by a workload",
      },
    ],
  ),
  ...mutantsOf(
    "server/changes/writeObject.ts",
    [`${FEATURES}/revisions.test.ts`],
    [
      {
        guard: "A write with If-Match changes no other revision.",
        find: "if (takesIfMatch(operation)) checkRevision(declaredBefore, request.ifMatch);",
        replace: "if (takesIfMatch(operation)) checkRevision;",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/namespaces/members.ts",
    [`${FEATURES}/namespaces.test.ts`],
    [
      {
        guard: "No request grants or revokes the owner's role.",
        find: 'if (over === "owner") throw',
        replace: 'if (over === "owner" && own !== "owner") throw',
        name: "include exactly one owner",
      },
      {
        guard: "No request changes the owner's membership.",
        find: `if (role === "owner") throw new ForbiddenError("the owner's membership cannot be changed");`,
        replace: "",
        name: "include exactly one owner",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/apiKeys/handlers.ts",
    [`${FEATURES}/apiKeys.test.ts`],
    [
      {
        guard: "An API key gets no role above the caller's role.",
        find: "checkRole(identity.role, role);",
        replace: "",
        name: "refuses a role above the caller's own",
      },
      {
        guard: "An update gives an API key no role above the caller's role.",
        find: "if (body.role) checkRole(identity.role, body.role);",
        replace: "",
        name: "refuses a role above the caller's own",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/firewall/patternCosts.ts",
    [`${FEATURES}/patternCosts.test.ts`],
    [
      {
        guard: "The patterns of a namespace's firewall rules have a maximum cost (RE2 limit of the service).",
        find: "if (others + cost <= FIREWALL_PATTERNS_MAX || cost <= totalPatternCost(removed)) return;",
        replace: "if (cost <= FIREWALL_PATTERNS_MAX || cost <= totalPatternCost(removed)) return;",
        name: "a new rule is refused",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/trustedWorkloads/handlers.ts",
    [`${HTTP}/matrixTenants.test.ts`],
    [
      {
        guard: "A member reads no trusted workload of another namespace.",
        find: "{ tenantId: identity.tenant, id: params.id }",
        replace: "{ id: params.id } as never",
        name: "callers of another namespace",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/devices/objects.ts",
    [`${HTTP}/matrixTenants.test.ts`],
    [
      {
        guard: "A member changes no device of another namespace.",
        find: 'find: (tx, tenantId, uid) => findRow(tx, "Device", { uid, tenantId }),',
        replace: 'find: (tx, _, uid) => findRow(tx, "Device", { uid } as never),',
        name: "callers of another namespace",
      },
      {
        guard: "A member changes no tags of a device of another namespace.",
        find: 'WHERE "Device"."uid" = ${uid} AND "Device"."tenantId" = ${tenantId} ORDER',
        replace: 'WHERE "Device"."uid" = ${uid} ORDER',
        name: "callers of another namespace",
      },
    ],
  ),
  ...mutantsOf(
    "server/http/limits/rateLimits.ts",
    [`${HTTP}/rateLimits.test.ts`],
    [
      {
        guard: "Logins from one network have a rate limit.",
        find: 'if (limit?.kind === "login") await',
        replace: 'if (limit?.kind === "login" && loginsPerAddress < 0) await',
        name: "counts logins of all kinds together",
      },
      {
        guard: "Logins of one account have a rate limit.",
        find: "await limitLogins(known ? `${key} from ${facts.network}` : key, loginsPerAccount);",
        replace: "if (!known) key;",
        name: "counts logins from all addresses together",
      },
      {
        guard: "The reports of devices from one network have a rate limit.",
        find: 'if (limit?.kind === "report") limitReports(facts.network);',
        replace: "limitReports;",
        name: "limits devices' reports separately",
      },
      {
        guard: "An attacker does not exhaust the logins of a user's known network.",
        find: "known ? `${key} from ${facts.network}` : key",
        replace: "known ? key : key",
        name: "accepts the user from a known network",
      },
    ],
  ),
  ...mutantsOf(
    "server/features/firewall/evaluate.ts",
    [`${FEATURES}/sshEntry.test.ts`],
    [
      {
        guard: "Another spelling of an address evades no deny rule.",
        find: "sourceIp: normalAddress(query.ip_address) ?? query.ip_address,",
        replace: "sourceIp: query.ip_address,",
        name: "the firewall",
      },
      {
        guard: "A denied login is refused to the trusted service.",
        find: "if (!allowed) throw",
        replace: "if (!allowed && rule === null) throw",
        name: "denies by the rule of highest priority",
      },
    ],
  ),
  ...mutantsOf(
    "server/secrets/digest.ts",
    [`${FEATURES}/deviceProof.test.ts`],
    [
      {
        guard: "Two secrets are compared as a whole.",
        find: "return timingSafeEqual(Buffer.from(digestOf(left)), Buffer.from(digestOf(right)));",
        replace: "return timingSafeEqual(Buffer.from(left.slice(0, 0)), Buffer.from(right.slice(0, 0)));",
        name: "requires a challenge of the service",
      },
    ],
  ),
  ...mutantsOf(
    "server/http/listener/securityHeaders.ts",
    [`${HTTP}/browsers.test.ts`],
    [
      {
        guard: "Browsers do not store responses.",
        find: '  "Cache-Control": "no-store",\n',
        replace: "",
      },
    ],
  ),
];
