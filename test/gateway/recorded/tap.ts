import { appendFileSync } from "node:fs";
import ssh2 from "ssh2";
import type { SshTap } from "./ssh2Protocol.ts";

// Loaded into a service that is recorded: writes down what its clients of agents say and hear, as it was before it was
// encrypted, and after.

const file = process.env.TAP_FILE ?? "";
let connections = 0;

interface Tapped {
  connect(...given: unknown[]): unknown;
  _protocol: SshTap;
}

const { prototype } = ssh2.Client as unknown as { readonly prototype: Tapped };
const connect = prototype.connect;

prototype.connect = function (this: Tapped, ...given: unknown[]) {
  const result = connect.apply(this, given);
  connections += 1;
  const connection = connections;
  const write = (from: "agent" | "gateway", payload: Buffer) => {
    const at = String(process.hrtime.bigint());
    appendFileSync(
      file,
      `${JSON.stringify({ at, connection, from, payload: payload.toString("base64") })}\n`,
    );
  };
  const protocol = this._protocol;
  const hear = protocol._onPayload;
  protocol._onPayload = (payload) => {
    write("agent", payload);
    return hear(payload);
  };
  let cipher = protocol._cipher;
  Object.defineProperty(protocol, "_cipher", {
    get: () => cipher,
    set: (next: SshTap["_cipher"]) => {
      const encrypt = next.encrypt.bind(next);
      next.encrypt = (packet) => {
        write("gateway", packet.subarray(5, 4 + packet.readUInt32BE(0) - (packet[4] ?? 0)));
        return encrypt(packet);
      };
      cipher = next;
    },
  });
  return result;
};
