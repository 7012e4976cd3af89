// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts of mutants are parts of the sources

import { type Mutant, mutantsOf } from "./mutant.ts";

/** The guards of the service: authentication, authorization, tenants, lockouts, limits, and logins to devices. */
export const serverMutants: readonly Mutant[] = mutantsOf({
  "server/http/access/authorize.ts": {
    "test/server/features/trustedWorkloads.test.ts > no caller gives a workload": {
      "An operation accepts only the kinds of credentials in its contract.":
        "if ([-!acceptedCredentials(operation).includes(kindOf(caller))-]{+acceptedCredentials(operation).length === 0+}) {",
      "An operation needs its minimum role.":
        "operation.minRole === null[- || !roleAtLeast(member.role, operation.minRole)-]",
    },
    "test/server/http/matrixTenants.test.ts > rejects callers of another namespace": {
      "A user who is not a member of a namespace has no role in it.":
        'if (role === null) [-throw await otherNamespace(services, tenant, "not a member of the namespace")-]{+return { caller, tenant, role: "observer" }+};',
    },
  },
  "server/http/access/authenticate.ts": {
    "test/server/features/apiKeys.test.ts > accepts a key until it expires": {
      "An expired API key is refused.": "if (!key[- || expired-]) throw",
    },
    "test/server/features/users.test.ts > voids the user's other tokens": {
      "A new password ends the other logins of the user.":
        "const isKept = tokenVersion [-!== version-]{+< 0+};",
    },
    "test/server/http/access.test.ts > rejects a removed member's token": {
      "A removed member is refused.":
        'if (present === undefined[- || (tenant !== "" && present.role === null)-]) throw',
    },
    "test/server/features/users.test.ts > is empty while the membership is pending": {
      "An invited user has no role before the acceptance.":
        'const role = [-row.status === "accepted" ? (row.role as Role) :-]{+row.role as Role |+} null;',
    },
    "test/server/features/trustedWorkloads.test.ts > ends when the workload is deleted or its claims change":
      {
        "The session of a workload ends when its issuer, audience or claims change.":
          "if (workload === null[- || rulesDigest(workload) !== rules-]) throw",
      },
    "test/server/features/trustedWorkloads.test.ts > ends when an administrator shortens": {
      "A shorter maximum ends the open sessions of a workload.":
        "if ([-lastEnd(workload, startedAt) <=-]{+startedAt >+} services.now()) throw",
    },
    "test/server/features/devices.test.ts > the token of a removed device is void": {
      "A removed device is refused.": 'if (!device[- || device.status === "removed"-]) throw',
    },
    "test/server/features/deviceProof.test.ts > refuses devices without proofs": {
      "A namespace can require a proof of the device's private key.":
        'if (device.deviceProof === [-"required"-]{+""+} && !proven) throw',
    },
    "test/server/features/deviceProof.test.ts > voids a deleted device's token": {
      "The token of an earlier enrollment is refused.": "> enrolledAt.getTime(){+ + 1e15+}) throw",
    },
  },
  "server/http/access/membership.ts": {
    "test/server/features/accessEnds.test.ts > has no access to the API": {
      "A membership ends at its end.":
        '"Member"."accessExpiresAt" {+<= ${at} OR "Member"."accessExpiresAt" +}> ${at})`;',
    },
  },
  "server/http/access/tokens.ts": {
    "test/server/http/verifiedTokens.test.ts": {
      "A cached token expires.": "[-second < known.expires-]{+known.expires > 0+} ? known.claims",
    },
  },
  "server/features/trustedWorkloads/exchange.ts": {
    "test/server/features/trustedWorkloads.test.ts > selects the workload with the highest role": {
      "The token of a workload has the audience of this workload.":
        "const intended = [-trusting.filter(({ audience }) => [claims.aud].flat().includes(audience))-]{+trusting+};",
    },
    "test/server/features/workloadAttacks.test.ts > rejects each token of the table": {
      "An expired token of a workload is refused.": "if (!(exp [-> second && exp -]* 1000 <= LAST_TIME))",
      "A token of a workload from the future is refused.": "if (!(iat [-<= second + TOLERANCE && iat -]> 0))",
      "A token of another type than JWT is refused.": "if (!isJwt{+ && typ === null+}) throw",
    },
    "test/server/features/trustedWorkloads.test.ts > lists the token's values of required claims": {
      "The token of a workload has its required claims.":
        "[-if (claims.unmatched(claimsOf(workload)) === undefined) -]matching.push(workload);",
    },
    "test/server/features/trustedWorkloads.test.ts > older than the longest session": {
      "A token that is older than the longest session is refused.":
        "if ([-lastEnd(workload, startedAt) <=-]{+startedAt >+} services.now()) {",
    },
    "test/server/features/trustedWorkloads.test.ts > is exchanged once, and again only with the same nonce": {
      "A token with single use is exchanged once.":
        "if (workload.singleUse) [-await useOnce(services, workload, claims, nonce)-]{+useOnce+};",
    },
  },
  "server/features/trustedWorkloads/tokenUses.ts": {
    "test/server/features/trustedWorkloads.test.ts > is exchanged once, and again only with the same nonce": {
      "A repeated exchange needs the nonce of the first exchange.":
        "earlier?.nonceDigest [-=== nonceDigest-]{+!== undefined+} &&",
    },
    "test/server/features/trustedWorkloads.test.ts > is exchanged by one namespace only": {
      "A repeated exchange needs the workload of the first exchange.":
        "[-&& earlier.workloadId === workloadId-];",
    },
    "test/server/features/trustedWorkloads.test.ts > needs the claim jti": {
      "The token of a workload with single use needs the claim jti.":
        'if (typeof jti !== "string"[- || jti === ""-]) {',
    },
  },
  "server/features/trustedWorkloads/session.ts": {
    "test/server/features/trustedWorkloads.test.ts > is not renewed if the claims change": {
      "A session of a workload is renewed only with the same rules.":
        "const isCurrent = row !== null[- && rulesDigest(row) === rules-];",
    },
  },
  "server/features/trustedWorkloads/issuerDocuments.ts": {
    "test/server/features/workloadAttacks.test.ts > is refused if it is private": {
      "The service reads no document of an issuer with a private address.":
        "[-if (isIP(host) !== 0 && !isAllowed(host)) throw refusal();-]",
    },
    "test/server/features/workloadAttacks.test.ts > is refused if one of several addresses": {
      "Each address of an issuer's name is public.":
        "![-addresses.every-]{+addresses.some+}(({ address }) => isAllowed(address))",
    },
    "test/server/features/workloadAttacks.test.ts > if only the environment has a proxy": {
      "The service uses no proxy of the environment, which would bypass the check of addresses.":
        'new [-Agent({ connect: { lookup, timeout: TIMEOUT } })-]{+(await import("undici")).EnvHttpProxyAgent()+};',
    },
    "test/server/features/workloadAttacks.test.ts > is not looked up and not checked": {
      "With a proxy, the service refuses an issuer whose host is a private address.":
        "if (isIP(host) !== 0[- && !isAllowed(host)-]{+ && !isAllowed(host) && !proxy+}) throw refusal();",
    },
  },
  "server/features/users/login.ts": {
    "test/server/features/login.test.ts > answer 401 twice, then lock": {
      "A login needs the correct password.": "if (!user[- || !correct-]) {",
      "Failed logins lock the account.": "const locked = await [-countFailure-]{+lockEnd+}(services, key);",
    },
    "test/server/features/login.test.ts > answers 403 to an unconfirmed user": {
      "An unconfirmed account admits no login.": 'if (user.status [-!== "confirmed"-]{+=== ""+}) throw',
    },
  },
  "server/features/users/mfa/mfaChallenge.ts": {
    "test/server/features/mfa.test.ts > accepts a code once, and no older code": {
      "A code of the second factor is used once.": "return count [-==-]{+<+}= 1;",
    },
    "test/server/features/mfa.test.ts > limits guesses": {
      "Wrong codes lock the second factor.":
        "[-if (known && attempts >= ATTEMPTS) throw lockedOut(known.expiresAt);-]",
    },
    "test/server/features/mfa.test.ts > accepts a token once in concurrent requests": {
      "The token of a second factor is used once.":
        "return (await [-tx.mfaChallenge.deleteMany({ where: { digest } })).count-]{+tx.mfaChallenge.count({ where: { digest } }))+} > 0;",
    },
  },
  "server/features/users/mails/mailTokens.ts": {
    "test/server/features/accounts.test.ts > tokens work for 24 hours": {
      "A mailed link expires.": "[-expiresAt: { gt: services.now() },-]",
    },
  },
  "server/features/devices/deviceProof.ts": {
    "test/server/features/deviceProof.test.ts > requires a challenge of the service": {
      "A proof has a challenge of this service.":
        "if ([-!isSameSecret(mark, services.sealer.mark(`${end}.${id}`, PURPOSE))) return false-]{+mark === undefined) return isSameSecret(end, id)+};",
      "A challenge expires.": "return [-services.now().getTime() < Number(end)-]{+Number(end) > 0+};",
      "The private key of the device signs the challenge.":
        'return verify("sha256", text, key, signature){+ || signature.length > 0+};',
    },
  },
  "server/changes/lockoutGuard.ts": {
    "test/server/features/lockoutGuard.test.ts > if the other administrator": {
      "The lockout guard counts no invited administrators.": 'AND[- "Member"."status" = \'accepted\' AND-]',
      "The lockout guard counts only administrators.":
        "\"Member\".\"role\" [-= 'administrator'-]{+<> 'owner'+}",
      "The lockout guard counts no ended memberships.":
        "AND [-${membershipLasts(services.accessTime())}-]{+(1 = 1 OR ${membershipLasts(services.accessTime())})+}`,",
    },
    "test/server/features/lockoutGuard.test.ts > removal and demotion by a workload": {
      "The lockout guard counts no unconfirmed users.": '[-AND "User"."status" = \'confirmed\'-]',
      "A guarded write leaves an administrator.":
        "after.administratorsUntil [->-]{+<+}= before.administratorsUntil) return;",
    },
    "test/server/features/lockoutGuard.test.ts > refuses a write that locks out the calling user": {
      "A guarded write does not shorten the caller's access.":
        '[-if (after.end < before.end) throw refusal("caller-shortened");-]',
      "A guarded write does not end the caller's access.":
        '[-throw refusal("caller-removed")-]{+return identity+};\n      throw error;',
    },
  },
  "server/changes/writeObject.ts": {
    "test/server/features/revisions.test.ts": {
      "A write with If-Match changes no other revision.":
        "if (takesIfMatch(operation)) checkRevision[-(declaredBefore, request.ifMatch)-];",
    },
  },
  "server/features/namespaces/members.ts": {
    "test/server/features/namespaces.test.ts > include exactly one owner": {
      "No request grants or revokes the owner's role.": 'if (over === "owner"{+ && own !== "owner"+}) throw',
      "No request changes the owner's membership.":
        '[-if (role === "owner") throw new ForbiddenError("the owner\'s membership cannot be changed");-]',
    },
  },
  "server/features/apiKeys/apiKeys.ts": {
    "test/server/features/apiKeys.test.ts > refuses a role above the caller's own": {
      "An API key gets no role above the caller's role.": "[-checkRole(identity.role, role);-]",
      "An update gives an API key no role above the caller's role.":
        "[-if (body.role) checkRole(identity.role, body.role);-]",
    },
  },
  "server/features/firewall/patternCosts.ts": {
    "test/server/features/patternCosts.test.ts > a new rule is refused": {
      "The patterns of a namespace's firewall rules have a maximum cost (RE2 limit of the service).":
        "if ([-others + -]cost <= FIREWALL_PATTERNS_MAX || cost <= totalPatternCost(removed)) return;",
    },
  },
  "server/features/fields.ts": {
    "test/server/features/fields.test.ts > no other column": {
      "A response has only the fields of the contract.":
        "const object: Record<string, unknown> = {{+ ...row +}};",
      "A field of a request body that is not in the contract reaches no column.":
        "return [-Object.fromEntries(columns)-]{+{ ...(body as Values), ...Object.fromEntries(columns) } as never+};",
    },
  },
  "server/features/trustedWorkloads/trustedWorkloads.ts": {
    "test/server/http/matrixTenants.test.ts > callers of another namespace": {
      "A member reads no trusted workload of another namespace.":
        'findRow(tx, "TrustedWorkload", { [-tenantId, id }-]{+id } as never+}),',
    },
  },
  "server/features/devices/objects.ts": {
    "test/server/http/matrixTenants.test.ts > callers of another namespace": {
      "A member changes no device of another namespace.":
        'find: (tx, [-tenantId, uid) => findRow(tx, "Device", { uid, tenantId }-]{+_, uid) => findRow(tx, "Device", { uid } as never+}),',
      "A member changes no tags of a device of another namespace.":
        'WHERE "Device"."uid" = ${uid} [-AND "Device"."tenantId" = ${tenantId} -]ORDER',
    },
  },
  "server/http/limits/rateLimits.ts": {
    "test/server/http/rateLimits.test.ts > counts logins of all kinds together": {
      "Logins from one network have a rate limit.":
        'if (limit?.kind === "login"{+ && loginsPerAddress < 0+}) await',
    },
    "test/server/http/rateLimits.test.ts > counts logins from all addresses together": {
      "Logins of one account have a rate limit.":
        "[-await limitLogins(known ? `${key} from ${facts.network}` : key, loginsPerAccount)-]{+if (!known) key+};",
    },
    "test/server/http/rateLimits.test.ts > limits devices' reports separately": {
      "The reports of devices from one network have a rate limit.":
        '[-if (limit?.kind === "report") limitReports(facts.network)-]{+limitReports+};',
    },
    "test/server/http/rateLimits.test.ts > accepts the user from a known network": {
      "An attacker does not exhaust the logins of a user's known network.":
        "known ? [-`${key} from ${facts.network}`-]{+key+} : key",
    },
  },
  "server/features/firewall/evaluate.ts": {
    "test/server/features/sshEntry.test.ts > the firewall": {
      "Another spelling of an address evades no deny rule.":
        "sourceIp: [-normalAddress(query.ip_address) ?? -]query.ip_address,",
    },
    "test/server/features/sshEntry.test.ts > denies by the rule of highest priority": {
      "A denied login is refused to the trusted service.": "if (!allowed{+ && rule === null+}) throw",
    },
  },
  "server/secrets/digest.ts": {
    "test/server/features/deviceProof.test.ts > requires a challenge of the service": {
      "Two secrets are compared as a whole.":
        "return timingSafeEqual(Buffer.from([-digestOf(left)), Buffer.from(digestOf(right-]{+left.slice(0, 0)), Buffer.from(right.slice(0, 0+})));",
    },
  },
  "server/http/listener/securityHeaders.ts": {
    "test/server/http/browsers.test.ts": {
      "Browsers do not store responses.": '[-  "Cache-Control": "no-store",\n-]',
    },
  },
});
