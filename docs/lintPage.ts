import { type LintRule, lintRules } from "../sdk/policy/index.ts";

function section([code, rule]: [code: string, rule: LintRule]): string {
  const severities = rule.severities.map((severity) => `\`${severity}\``).join(" or ");
  return [
    `## ${code}`,
    `${rule.title} (${severities}).`,
    rule.means,
    `**Why it matters.** ${rule.matters}`,
    `**How to mend it.** ${rule.mend}`,
  ].join("\n\n");
}

/** The page of what lint finds, made of `lintRules`. */
export function lintPage(note: string): string {
  const head = `# What lint finds in a policy

\`lint\` of \`@gatehouse-access/sdk/policy\` looks at devices, public keys and firewall rules, and, where they are given, at
API keys and pending invitations. An \`error\` means that the policy does not say what it means; a \`warning\` that it lets in
more, or does less, than it seems to; an \`info\` that it can be simpler or clearer. Inactive rules are left alone.

What a rule or key does is judged over a domain: the devices, and the login names and addresses that the policy is evaluated
for, which are \`root\`, what the patterns name, and what was added. What a pattern does not spell out stands there with one
example, and a pattern of unusual syntax with none: where a finding says "of the domain", look whether the domain has what
the rule is for. Of a policy without devices no rule is said to do nothing.`;
  return [note, head, ...Object.entries(lintRules).map(section)].join("\n\n");
}
