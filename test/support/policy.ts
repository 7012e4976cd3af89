import { sshKeyLine } from "../provider/support/programs.ts";

/** Declarations of the program in `endToEnd/fixtures/commonjs`: classes and arguments, by the resources' names. */
export type Policy = Record<
  string,
  {
    type: string;
    args: Record<string, unknown>;
    options?: { import?: string; retainOnDelete?: boolean; ignoreChanges?: string[] };
  }
>;

/** Returns the environment variable for the program. */
export const policyEnv = (policy: Policy) => ({ POLICY: JSON.stringify(policy) });

const data = new Map<string, string>();

/** Returns an OpenSSH line for a name, always the same one. */
export function keyData(name: string): string {
  const line = data.get(name) ?? sshKeyLine(name);
  data.set(name, line);
  return line;
}

type Args = Record<string, unknown>;

/** Returns a public key, by default for root on every device. */
export const publicKey = (
  name: string,
  username = "^root$",
  filter: Args = { hostname: ".*" },
  more: Args = {},
) => ({ type: "PublicKey", args: { name, data: keyData(name), username, filter, ...more } });

/** Returns a firewall rule, by default for every login. */
export const firewallRule = (action: "allow" | "deny", priority: number, more: Args = {}) => ({
  type: "FirewallRule",
  args: { action, priority, sourceIp: ".*", username: ".*", filter: { hostname: ".*" }, ...more },
});
