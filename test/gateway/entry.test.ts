import { once } from "node:events";
import { connect, type Socket } from "node:net";
import ssh2 from "ssh2";
import { afterEach, expect, it } from "vitest";
import { admitKey, EVERYTHING, type Login, newKey } from "../support/sshFleet.ts";
import { describeSsh } from "./SshTarget.ts";

const options = {
  flags: [
    "--ssh-startups-per-address",
    "5",
    "--ssh-refusals-per-address",
    "4",
    "--ssh-forwarding",
    "on",
    // The gateway and the agent each have a list of accepted environment variables. The gateway accepts fewer variables
    // than the agent, so that the test results depend only on the gateway's list.
    "--trusted-proxies",
    "127.0.0.9",
    "--ssh-environment",
    "LANG,LC_KNOWN*",
  ],
  agent: { flags: ["--allow-forwarding"] },
};

describeSsh("the SSH entry", options, (target) => {
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });
  const login = (more: Partial<Login> = {}) => target.ssh({ command: "echo in", ...more });

  /** Opens a connection and sends only the given bytes. */
  function openSocket(from: string, bytes: string | Buffer = ""): Socket {
    const socket = connect({ port: target.fleet.port, host: "127.0.0.1", localAddress: from });
    socket.on("error", () => {});
    sockets.push(socket);
    if (bytes.length > 0) socket.write(bytes);
    return socket;
  }

  it("applies a change of the policy to the next login", async () => {
    const { client } = target.fleet;
    expect(await login()).toMatchObject({ stdout: "in\n" });
    const deny = { action: "deny", active: true, priority: 1, sourceIp: ".*", ...EVERYTHING } as const;
    const { id } = await client.createFirewallRule({ body: deny });
    expect(await login()).toMatchObject({ code: 255 });
    await client.updateFirewallRule({ params: { id }, body: { ...deny, active: false } });
    expect(await login()).toMatchObject({ stdout: "in\n" });
    await client.updateFirewallRule({ params: { id }, body: { ...deny, sourceIp: "127.0.0.2" } });
    expect(await login({ from: "127.0.0.2" })).toMatchObject({ code: 255 });
    expect(await login({ from: "127.0.0.3" })).toMatchObject({ stdout: "in\n" });
    await client.deleteFirewallRule({ params: { id } });
    await client.updatePublicKey({
      params: { fingerprint: target.fingerprint },
      body: { name: "key", ...EVERYTHING, username: "^ana$" },
    });
    expect(await login({ from: "127.0.0.3" })).toMatchObject({ code: 255 });
    await client.deletePublicKey({ params: { fingerprint: target.fingerprint } });
    expect(await login({ from: "127.0.0.4" })).toMatchObject({ code: 255 });
    await admitKey(target.fleet, target.key);
    expect(await login()).toMatchObject({ stdout: "in\n" });
  });

  it("accepts a device's uid as the target", async () => {
    expect(await login({ to: `root@${target.agent.uid}` })).toMatchObject({ stdout: "in\n" });
  });

  it("gives unauthenticated clients no details, and logs the reason for the operator", async () => {
    const before = target.fleet.service.logs().length;
    const other = newKey(target.folder, "other");
    const targets = ["root@nowhere.edge-1", `root@${target.fleet.namespace}.edge-9`, "root", target.to];
    const answers = [];
    for (const [index, to] of targets.entries()) {
      const { code, stderr } = await login({
        to,
        key: other,
        from: `127.0.3.${index + 1}`,
        flags: ["-o", "LogLevel=DEBUG1"],
      });
      const lines = stderr.replaceAll(to, "…").split(/\r?\n/);
      answers.push([code, ...lines.filter((line) => /authenticat|accepts|banner|denied|closed/i.test(line))]);
    }
    const [first] = answers;
    expect(first).toContain("…@127.0.0.1: Permission denied (publickey,password).");
    expect(answers).toEqual(targets.map(() => first));
    await expect
      .poll(() =>
        target.fleet.service
          .logs()
          .slice(before)
          .filter(({ msg }) => msg === "login to a device refused")
          .map(({ refused, address }) => [address, refused]),
      )
      .toEqual([
        ["127.0.3.1", "device"],
        ["127.0.3.2", "device"],
        ["127.0.3.3", "address"],
        ["127.0.3.4", "key"],
      ]);
  });

  it("closes the oldest silent connection of an address that has too many", async () => {
    const silent = Array.from({ length: 5 }, () => openSocket("127.0.4.1"));
    const closed = silent.map((socket) => once(socket, "close"));
    await Promise.all(silent.map((socket) => once(socket, "data")));
    const sixth = openSocket("127.0.4.1");
    await closed[0];
    await once(sixth, "data");
    expect(await login({ from: "127.0.4.1" })).toMatchObject({ stdout: "in\n" });
    expect(silent.filter((socket) => socket.closed).length).toBeLessThan(5);
  });

  it("blocks only the address of a client with too many refused logins", async () => {
    const other = newKey(target.folder, "refused");
    for (let time = 0; time < 4; time += 1) {
      expect((await login({ key: other, from: "127.0.5.1" })).stderr).toContain("Permission denied");
    }
    expect((await login({ from: "127.0.5.1" })).stderr).toMatch(/closed|reset/i);
    expect(await login({ from: "127.0.5.2" })).toMatchObject({ stdout: "in\n" });
  });

  /** Sends a header and a login that the gateway rejects. Returns the client's address in the log. */
  async function addressSeen(from: string, header: string | Buffer): Promise<unknown> {
    const before = target.fleet.service.logs().length;
    const client = new ssh2.Client();
    const failed = once(client, "error");
    const sock = openSocket(from, header);
    client.connect({ sock, username: `root@${target.fleet.namespace}.edge-9`, password: "wrong" });
    await failed;
    const refusal = () =>
      target.fleet.service
        .logs()
        .slice(before)
        .find(({ refused }) => refused === "device");
    await expect.poll(refusal).toBeDefined();
    return refusal()?.address;
  }

  const V2 = Buffer.concat([
    Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1"),
    Buffer.from([0x21, 0x11, 0, 12, 198, 51, 100, 7, 127, 0, 0, 1, 0x30, 0x39, 0, 22]),
  ]);
  const V2_OF_6 = Buffer.concat([
    Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1"),
    Buffer.from([0x21, 0x21, 0, 36]),
    Buffer.from("20010db8000000000000000000000007", "hex"),
    Buffer.alloc(16),
    Buffer.from([0x30, 0x39, 0, 22]),
  ]);

  it.each([
    ["version 1", "PROXY TCP4 198.51.100.7 127.0.0.1 12345 22\r\n", "198.51.100.7"],
    ["version 2", V2, "198.51.100.7"],
    ["version 2, of IPv6", V2_OF_6, "2001:db8::7"],
    ["none", "", "127.0.0.9"],
  ])(
    "accepts a client's address from a trusted proxy: PROXY protocol, %s",
    async (_version, header, address) => {
      expect(await addressSeen("127.0.0.9", header)).toBe(address);
    },
  );

  it("rejects headers of untrusted addresses, and malformed headers", async () => {
    const greeting = "SSH-2.0-Client\r\n";
    const untrusted = openSocket(
      "127.0.6.1",
      `PROXY TCP4 198.51.100.7 127.0.0.1 12345 22\r\n${greeting}`,
    ).resume();
    const short = Buffer.concat([V2.subarray(0, 12), Buffer.from([0x21, 0x11, 0, 4, 198, 51, 100, 7])]);
    const future = Buffer.concat([V2.subarray(0, 12), Buffer.from([0x31]), V2.subarray(13)]);
    const malformed = [`PROXY TCP4 nowhere\r\n${greeting}`, short, future].map((header) =>
      openSocket("127.0.0.9", header).resume(),
    );
    await Promise.all([untrusted, ...malformed].map((socket) => once(socket, "close")));
  });

  it("passes on only the allowed variables", async () => {
    const command = "echo $LANG $LC_KNOWN_1 $LC_OTHER $LD_PRELOAD.";
    const flags = ["-o", "SetEnv=LANG=C LC_KNOWN_1=known LC_OTHER=unknown LD_PRELOAD=unknown"];
    expect((await login({ command, flags })).stdout).toBe("C known .\n");
  });

  it("forwards connections if the operator allows it", async () => {
    const flags = ["-W", `127.0.0.1:${new URL(target.fleet.service.url).port}`];
    const { stdout } = await target.ssh({ flags }, "GET /healthcheck HTTP/1.0\r\n\r\n");
    expect(stdout).toContain("200 OK");
  });

  it.each([
    ["-o", "KexAlgorithms=diffie-hellman-group14-sha1"],
    ["-c", "aes128-cbc"],
    ["-o", "HostKeyAlgorithms=ssh-rsa"],
  ])("offers no outdated algorithms: %s %s", async (...flags) => {
    const { stderr } = await login({ flags: [...flags, "-o", "LogLevel=INFO"], from: "127.0.7.1" });
    expect(stderr).toContain("no matching");
  });

  it("announces the accepted signature algorithms, so that clients with such keys log in", async () => {
    const { stderr } = await login({ flags: ["-o", "LogLevel=DEBUG1"] });
    const [, list = ""] = /server-sig-algs=<([^>]*)>/.exec(stderr) ?? [];
    const ecdsa = [256, 384, 521].map((bits) => `ecdsa-sha2-nistp${bits}`);
    expect(list.split(",").toSorted()).toEqual([...ecdsa, "rsa-sha2-256", "rsa-sha2-512", "ssh-ed25519"]);
  });

  it("uses strict key exchange, which prevents prefix truncation attacks", async () => {
    const { stderr } = await login({ flags: ["-vv", "-o", "LogLevel=DEBUG2"] });
    expect(stderr).toContain("kex-strict-s-v00@openssh.com");
    expect(stderr).toContain("resetting send seqnr");
  });
});
