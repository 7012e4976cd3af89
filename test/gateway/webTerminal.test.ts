import { createPrivateKey, sign } from "node:crypto";
import { once } from "node:events";
import ssh2 from "ssh2";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { newEd25519Pair } from "../../server/secrets/hostKey.ts";
import { passwordSetting, type SshTarget, sharedTarget } from "./SshTarget.ts";

const PASSWORD = "typed into a browser";

interface TerminalRequest {
  readonly device: string;
  readonly username: string;
  readonly password?: string;
  readonly fingerprint?: string;
  readonly signature?: string;
}

/**
 * Creates a key pair. `data` is the public key in the format of the API, and `signatureOf` signs a login as the browser
 * does.
 */
function browserKey(kind: "ed25519" | "rsa") {
  const pair = kind === "rsa" ? ssh2.utils.generateKeyPairSync("rsa", { bits: 2048 }) : newEd25519Pair();
  const parsed = ssh2.utils.parseKey(pair.private);
  if (parsed instanceof Error) throw parsed;
  return {
    data: Buffer.from(pair.public).toString("base64"),
    signatureOf: (login: string): string => {
      if (kind === "ed25519") return (parsed.sign(login) as Buffer).toString("base64");
      return sign("sha1", Buffer.from(login), createPrivateKey(parsed.getPrivatePEM())).toString("base64");
    },
  };
}

const options = {
  agent: () => ({ env: passwordSetting(PASSWORD) }),
  begin: ({ fleet: { client, tenant } }: SshTarget) =>
    client.setSessionRecord({ params: { tenant }, body: { sessionRecord: true } }),
};

describe("the web terminal", () => {
  const target = sharedTarget(options);

  /** Opens a web terminal with a ticket. */
  function open(token: string, size = "cols=100&rows=30") {
    const url = `${target.fleet.service.url.replace("http", "ws")}/ws/ssh?token=${token}&${size}`;
    const socket = new WebSocket(url, { headers: { Origin: target.fleet.service.url } });
    let output = "";
    socket.on("message", (data, binary) => {
      expect(binary).toBe(false);
      output += String(data);
    });
    const closed = once(socket, "close").then(([code]) => code as number);
    return {
      closed,
      output: () => output,
      type: (text: string) => socket.send(JSON.stringify({ kind: 1, data: [...Buffer.from(text)] })),
      paste: (text: string) =>
        socket.send(JSON.stringify({ kind: 1, data: Buffer.from(text).toString("base64") })),
      resize: (cols: number, rows: number) => socket.send(JSON.stringify({ kind: 2, data: { cols, rows } })),
      send: (message: string) => socket.send(message),
      untilShown: (expected: string) => expect.poll(() => output).toContain(expected),
    };
  }

  const requestTicket = async (request: TerminalRequest): Promise<string> =>
    (await target.fleet.client.openWebTerminal({ body: request })).token;
  const withPassword = (password = PASSWORD, username = "root") =>
    requestTicket({ device: target.agent.uid, username, password });

  it("is a shell of the device, with the size that the browser sends", async () => {
    const terminal = open(await withPassword());
    await expect.poll(() => terminal.output().length).toBeGreaterThan(0);
    terminal.type("stty size; echo $TERM\n");
    await terminal.untilShown("30 100");
    terminal.resize(120, 40);
    // The program receives the new size by a signal, separately from its input.
    terminal.type('until [ "$(stty size)" = "$((39 + 1)) 120" ]; do sleep 0.05; done; stty size\n');
    await terminal.untilShown("40 120");
    const many = "a".repeat(3000);
    terminal.paste(`echo ${many} | wc -c\n`);
    await terminal.untilShown("3001");
    terminal.type("exit\n");
    expect(await terminal.closed).toBe(1000);
    const [session] = await target.fleet.client.getSessions({});
    expect(session).toMatchObject({ type: "web", term: "xterm", authenticated: true, username: "root" });
    await expect.poll(async () => (await target.fleet.client.getSessions({}))[0]?.active).toBe(false);
    const params = { uid: session?.uid ?? "", seat: "0" };
    expect(JSON.stringify(await target.fleet.client.getSessionRecord({ params }))).toContain("30 100");
  });

  it("opens once per ticket", async () => {
    const token = await withPassword();
    const first = open(token);
    await expect.poll(() => first.output().length).toBeGreaterThan(0);
    const second = open(token);
    expect(await second.closed).toBe(1000);
    expect(second.output()).toContain("invalid or has expired");
    first.type("exit\n");
    await first.closed;
  });

  it("answers a wrong password and an unknown device identically", async () => {
    const wrong = open(await withPassword("another"));
    await wrong.closed;
    const nowhere = open(
      await requestTicket({ device: "0".repeat(64), username: "root", password: PASSWORD }),
    );
    await nowhere.closed;
    expect([wrong.output(), nowhere.output()]).toEqual(["Permission denied", "Permission denied"]);
  });

  it.each(["ed25519", "rsa"] as const)("accepts a key of the namespace: %s", async (kind) => {
    const { client } = target.fleet;
    const key = browserKey(kind);
    const { fingerprint } = await client.createPublicKey({
      body: { name: kind, data: key.data, username: "^ana$", filter: { hostname: ".*" } },
    });
    const request = { device: target.agent.uid, fingerprint };
    const signed = (username: string, of = username) =>
      requestTicket({ ...request, username, signature: key.signatureOf(of) });
    const terminal = open(await signed("ana"));
    await expect.poll(() => terminal.output().length).toBeGreaterThan(0);
    terminal.type("exit\n");
    await terminal.closed;
    for (const refused of [await signed("root"), await signed("ana", "root")]) {
      const denied = open(refused);
      await denied.closed;
      expect(denied.output()).toBe("Permission denied");
    }
    const deny = { action: "deny", active: true, priority: 1, sourceIp: ".*", username: ".*" } as const;
    const { id } = await client.createFirewallRule({ body: { ...deny, filter: { hostname: ".*" } } });
    const denied = open(await signed("ana"));
    await denied.closed;
    expect(denied.output()).toBe("Permission denied");
    await client.deleteFirewallRule({ params: { id } });
  });

  it("ends when its session is closed, and on an invalid message", async () => {
    const terminal = open(await withPassword());
    await expect.poll(() => terminal.output().length).toBeGreaterThan(0);
    const [session] = await target.fleet.client.getSessions({});
    await target.fleet.client.closeSession({
      params: { uid: session?.uid ?? "" },
      body: { device: target.agent.uid },
    });
    await terminal.closed;
    expect(terminal.output()).toContain("the session was closed");
    const other = open(await withPassword());
    await expect.poll(() => other.output().length).toBeGreaterThan(0);
    other.send("hello");
    expect(await other.closed).toBe(1007);
    expect(target.fleet.service.output()).not.toContain(PASSWORD);
  });

  it("requires a password, or a key with its signature", async () => {
    await expect(requestTicket({ device: target.agent.uid, username: "root" })).rejects.toThrow(
      "password is required unless",
    );
  });
});
