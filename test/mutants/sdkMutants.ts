import { type Mutant, mutantsOf } from "./mutant.ts";

/** The guards of the client package: access decisions, required claims, limits, and masked secrets. */
export const sdkMutants: readonly Mutant[] = mutantsOf({
  "sdk/policy/decisions.ts": {
    "test/policy/decisions.test.ts": {
      "An invalid pattern of a deny rule denies.": '=> rule.action === [-"deny"-]{+"allow"+};',
      "An invalid pattern of a key admits no login name.":
        "patternFound(username, login, [-false-]{+true+}, patterns);",
      "A key that admits no login denies the login.": "if ([-refusal !== undefined-]{+false+}) return",
      "A key denies logins to devices that its filter does not match.":
        "if ([-!filterMatches(key.filter, device, false, patterns)-]{+false+}) return",
      "A key that the namespace does not have denies the login.":
        'if (!key) return { deniedBy: [-"key"-]{+undefined+}, rule: null };',
      "An inactive rule does not decide.": "[-rule.active && -]!hasExpired(rule, at);",
      "The rule with the highest priority decides.":
        "sort((left, right) => [-right.priority - left.priority-]{+left.priority - right.priority+})",
      "Of rules with the same priority, the newest one decides.":
        "return [-rules.toReversed()-]{+[...rules]+}.sort(",
    },
    "test/policy/expiryGuards.test.ts": {
      "An expired rule does not decide.": "rule.active [-&& !-]{+|| +}hasExpired(rule, at);",
    },
  },
  "sdk/times.ts": {
    "test/sdk/times.test.ts": {
      "A text that is not a time has passed.":
        "[-!(Date.parse(time) > now.getTime()-]{+Date.parse(time) <= now.getTime(+});",
    },
  },
  "sdk/policy/expiry.ts": {
    "test/policy/expiryGuards.test.ts": {
      "A key of a user who is not an accepted member admits no login.":
        'return owner[-?.isAccepted-] && !hasExpired(owner, at) ? undefined : "owner";',
      "A key of a member whose membership has ended admits no login.":
        'return owner?.isAccepted [-&& !hasExpired(owner, at) -]? undefined : "owner";',
      "A key of a refused type admits no login.": '[-if (key.refusedType !== undefined) return "type";-]',
    },
  },
  "sdk/policy/claimPattern.ts": {
    "test/policy/workload.property.test.ts": {
      "The wildcard * of a required claim matches no slash.":
        "const stays = code === [-SLASH-]{+-1+} ? stayingAtSlash : staying;",
      "A required claim matches the whole text.":
        "if ([-!text.startsWith(this.#beginning)) return false-]{+text.startsWith(this.#beginning)) return true+};",
    },
  },
  "sdk/policy/workload.ts": {
    "test/policy/workload.property.test.ts": {
      "A claim is not read from the prototype.":
        "[-Object.hasOwn(this.#claims, name) ? textsOf(this.#claims[name]) : []-]{+textsOf(this.#claims[name])+}",
    },
  },
  "sdk/proxies.ts": {
    "test/sdk/proxies.test.ts > is not used for the loopback address": {
      "Requests to a loopback address use no proxy.":
        "[-if (isLoopbackHost(withoutDot(target.hostname))) return undefined;-]",
    },
    "test/sdk/proxies.test.ts > shows no password": {
      "A printed proxy shows no password.": "this.address = url.[-origin-]{+href+};",
    },
  },
  "sdk/answer.ts": {
    "test/sdk/otherServers.test.ts": {
      "Bytes after an HTTP response do not prove that a request had no effect.":
        "(isSsh || [-!context.isReached-]{+true+})",
    },
  },
  "sdk/mask.ts": {
    "test/sdk/mask.test.ts": {
      "Overlapping secrets are masked completely.": "spansOf(text, secret){+.slice(0, 1)+});\n  if (found",
      "A secret that is equal to a sentence is masked.": 'sentence !== ""[- && !secrets.includes(sentence)-]',
      "A secret that begins in a sentence and ends after it is masked.":
        "if ([-span.end-]{+span.start+} <= ownEnd) continue;",
    },
  },
  "sdk/contract/trustedWorkloads.ts": {
    "test/server/features/trustedWorkloads.test.ts": {
      "A workload does not get the role owner.": 'role: [-role.exclude(["owner"])-]{+role+}',
      "Only an administrator writes trusted workloads.":
        '  object: "trustedWorkload",\n  minRole: [-"administrator"-]{+"operator"+},',
    },
  },
});
