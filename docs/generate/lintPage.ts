import { type LintRule, lintRules } from "../../sdk/policy/index.ts";

function section([code, rule]: [code: string, rule: LintRule]): string {
  const severities = rule.severities.map((severity) => `\`${severity}\``).join(" or ");
  return [
    `## ${code}`,
    `${rule.title} (${severities}).`,
    rule.means,
    `**Why it matters.** ${rule.matters}`,
    `**How to fix it.** ${rule.mend}`,
  ].join("\n\n");
}

/** Returns the page about lint findings, generated from `lintRules`. */
export function lintPage(note: string): string {
  const head = `# Lint findings

\`lint\` of \`@gatehouse-access/sdk/policy\` checks devices, public keys and firewall rules, and optionally API keys,
trusted workloads and pending invitations. An \`error\` is a mistake in the policy. A \`warning\` is a policy that admits
more logins, or has less effect, than its text suggests. An \`info\` is a policy that could be simpler or clearer.
\`lint\` skips inactive rules.

The effects of rules and keys are evaluated over the devices, and over a set of login names and addresses. This set
contains \`root\`, the names and addresses that appear in the patterns, and names and addresses that you add. For a part
of a pattern that is not a literal text, the set contains one example. For a pattern with unusual syntax, it contains no
text. If a finding mentions "evaluated" logins or addresses, check that the set contains the logins and addresses for
which the rule is intended. If a policy has no devices, \`lint\` reports no rule as a rule without effect.`;
  return [note, head, ...Object.entries(lintRules).map(section)].join("\n\n");
}
