import { type Mutant, mutantsOf } from "./mutant.ts";

/** The guards of the device agent. */
export const agentMutants: readonly Mutant[] = [
  ...mutantsOf(
    "agent/SshServer.ts",
    ["test/agent/logins.test.ts"],
    [
      {
        guard: "Only the pinned key of the service can log in to a device.",
        find: "if (pinned !== undefined && !pinned.equals(key.data)) return false;",
        replace: "if (pinned !== undefined && pinned.length === 0) return false;",
      },
      {
        guard: "A login to a device needs a signature of the client.",
        find: "if (parsed.verify(blob, signature, hashAlgo) !== true) return false;",
        replace: "",
      },
      {
        guard: "A login to a device needs a signature of the service.",
        find: 'return verify("sha256", Buffer.from(data), createPublicKey(parsed.getPublicPEM()), serviceSignature);',
        replace: "return serviceSignature.length > 0;",
      },
      {
        guard: "A device serves only its own login names.",
        find: "if (!this.#checks.served(context.username)) return false;",
        replace: "",
      },
    ],
  ),
  ...mutantsOf(
    "agent/password.ts",
    ["test/agent/logins.test.ts", "test/agent/command.test.ts"],
    [
      {
        guard: "Without a hash, a device rejects every password.",
        find: "if (!stored) return async () => false;",
        replace: "if (!stored) return async () => true;",
      },
    ],
  ),
];
