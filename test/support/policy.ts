import { sshKeyLine } from "../provider/support/programs.ts";

/**
 * The resources that the program in `endToEnd/fixtures/commonjs` declares: class and arguments, by the resource's name.
 */
export type Policy = Record<
  string,
  {
    type: string;
    args: Record<string, unknown>;
    options?: { import?: string; retainOnDelete?: boolean; ignoreChanges?: string[] };
  }
>;

/** Returns the environment variable from which the program reads its resources. */
export const policyEnv = (policy: Policy) => ({ POLICY: JSON.stringify(policy) });

const data = new Map<string, string>();

/** Returns an OpenSSH public key line. Each name always gets the same key. */
export function keyData(name: string): string {
  const line = data.get(name) ?? sshKeyLine(name);
  data.set(name, line);
  return line;
}

type Args = Record<string, unknown>;

/** Returns the declaration of a public key. By default the key allows root on every device. */
export const publicKey = (
  name: string,
  username = "^root$",
  filter: Args = { hostname: ".*" },
  more: Args = {},
) => ({ type: "PublicKey", args: { name, data: keyData(name), username, filter, ...more } });

/** Returns the declaration of a firewall rule. By default the rule matches every login. */
export const firewallRule = (action: "allow" | "deny", priority: number, more: Args = {}) => ({
  type: "FirewallRule",
  args: { action, priority, sourceIp: ".*", username: ".*", filter: { hostname: ".*" }, ...more },
});
