import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import ssh2 from "ssh2";
import { expect, it } from "vitest";
import { call } from "../support/call.ts";
import { CLIENT } from "../support/sshFleet.ts";
import { openTerminal } from "../support/terminal.ts";
import { describeSsh, type SshTarget } from "./SshTarget.ts";

const options = {
  env: { GATEHOUSE_LOG_LEVEL: "debug", GATEHOUSE_METRICS_ADDRESS: "127.0.0.1:0" },
  flags: ["--drain", "30"],
  begin: ({ fleet: { client, tenant } }: SshTarget) =>
    client.setSessionRecord({ params: { tenant }, body: { sessionRecord: true } }),
};

describeSsh("terminals of OpenSSH", options, (target) => {
  const recordOf = (uid: string, seat: string) =>
    target.fleet.client.getSessionRecord({ params: { uid, seat } });

  /** Opens OpenSSH's client in a terminal window of the given size. */
  function openWindow(cols: number, rows: number, command?: string) {
    const args = [
      "-F",
      "none",
      ...CLIENT,
      "-tt",
      "-p",
      String(target.fleet.port),
      "-i",
      target.key,
      `${target.to}@127.0.0.1`,
    ];
    return openTerminal("ssh", command === undefined ? args : [...args, command], {
      env: { PATH: process.env.PATH ?? "", HOME: "/nonexistent", TERM: "xterm-256color" },
      cols,
      rows,
    });
  }

  it("have the size of the client's window, and the recording has the same sizes", async () => {
    const window = openWindow(91, 31, "stty size; read line; stty size; exit 4");
    await window.untilShown("31 91");
    window.resize(132, 43);
    await target.session(({ events }) => events.items.some(({ type }) => type === "window-change"));
    window.type("go on");
    await window.untilShown("43 132");
    expect(await window.code).toBe(4);
    const { uid, type, term, events } = await target.session(({ active }) => !active);
    expect({ type, term }).toEqual({ type: "exec", term: "xterm-256color" });
    expect(events.items.map((item) => [item.type, item.data])).toMatchObject([
      ["pty-req", { term: "xterm-256color", columns: 91, rows: 31 }],
      ["exec", { command: "stty size; read line; stty size; exit 4" }],
      ["window-change", { columns: 132, rows: 43 }],
      ["exit-status", { status: 4 }],
    ]);
    const record = await recordOf(uid, "0");
    const sizeOf = (output: string) => {
      const chunk = record.find(({ message }) => message.includes(output));
      return [chunk?.width, chunk?.height];
    };
    expect(sizeOf("31 91")).toEqual([91, 31]);
    expect(sizeOf("43 132")).toEqual([132, 43]);
  });

  it("accept a new size while the device starts the command", async () => {
    const client = new ssh2.Client();
    client.connect({
      host: "127.0.0.1",
      port: target.fleet.port,
      username: target.to,
      privateKey: readFileSync(target.key),
    });
    await once(client, "ready");
    client.setNoDelay();
    const run = (command: string, window?: ssh2.PseudoTtyOptions) =>
      new Promise<ssh2.ClientChannel>((resolve, reject) => {
        client.exec(command, { ...(window && { pty: window }) }, (error, channel) => {
          if (error) return reject(error);
          // At this time, the gateway has confirmed the terminal, but the device has not.
          if (window) channel.setWindow(43, 132, 0, 0);
          resolve(channel);
        });
      });
    // Runs one command first: the gateway connects to the device only when the client opens its first channel.
    expect(await text(await run("echo reached"))).toBe("reached\n");
    const channel = await run("read line; stty size", { cols: 91, rows: 31, height: 0, width: 0 });
    channel.end("go on\n");
    expect(await text(channel)).toContain("43 132");
    client.end();
  });

  it("of one connection are seats of one session, each with its own events and recording", async () => {
    const shared = ["-S", join(target.folder, "shared")];
    const master = target.spawnSsh({ command: "echo from the first; cat", flags: ["-M", ...shared] });
    const errors = text(master.stderr);
    const ended = once(master, "close");
    await once(master.stdout, "data");
    const second = await target.ssh({ command: "echo from the second; exit 5", flags: shared });
    expect(second).toMatchObject({ code: 5, stdout: "from the second\n" });
    master.stdin.end();
    expect(await ended).toEqual([0, null]);
    expect(await errors).toBe("");
    const { uid, events } = await target.session(({ active }) => !active);
    expect(events.seats).toEqual([0, 1]);
    expect(events.items.map(({ seat, type, data }) => [seat, type, data])).toMatchObject([
      [0, "exec", { command: "echo from the first; cat" }],
      [1, "exec", { command: "echo from the second; exit 5" }],
      [1, "exit-status", { status: 5 }],
      [0, "exit-status", { status: 0 }],
    ]);
    const outputOf = async (seat: string) =>
      (await recordOf(uid, seat)).map(({ message }) => message).join("");
    expect(await outputOf("0")).toBe("from the first\n");
    expect(await outputOf("1")).toBe("from the second\n");
  });

  it("log no typed input, and record only visible input", async () => {
    const window = openWindow(80, 24);
    window.type("echo $((6 * 7)) typed-in-sight");
    await window.untilShown("42 typed-in-sight");
    window.type("stty -echo; echo hid''den");
    await window.untilShown("hidden");
    window.type("read secret");
    window.type("typed-in-secret");
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the device's shell puts the length in its place
    window.type("echo ${#secret} characters; exit");
    await window.untilShown("15 characters");
    expect(await window.code).toBe(0);
    const typed = await target.session(({ active }) => !active);
    expect(typed).toMatchObject({ type: "term", term: "xterm-256color" });
    await target.ssh({}, "true piped-in-secret\n");
    const piped = await target.session(({ uid, active }) => uid !== typed.uid && !active);

    // Checks first that the log contains both sessions and that the recording contains the visible input. Otherwise,
    // the checks for hidden input below could pass on the wrong texts.
    const log = target.fleet.service.output();
    for (const { uid } of [typed, piped]) expect(log).toContain(uid);
    expect(JSON.stringify(await recordOf(typed.uid, "0"))).toContain("typed-in-sight");
    for (const hidden of ["typed-in-sight", "typed-in-secret", "piped-in-secret"]) {
      expect(log).not.toContain(hidden);
      expect(target.agent.output()).not.toContain(hidden);
      expect(JSON.stringify([typed, piped])).not.toContain(hidden);
    }
    expect(JSON.stringify(await recordOf(typed.uid, "0"))).not.toContain("typed-in-secret");
  });

  it("report metrics: logins, their time, and waiting entries", async () => {
    const line = target.fleet.service.logs().find(({ msg }) => msg.startsWith("metrics open at "));
    const metrics = await (await fetch(`${line?.msg.slice("metrics open at ".length)}/metrics`)).text();
    const value = (name: string) => Number(new RegExp(`^${name} (\\d+)`, "m").exec(metrics)?.[1]);
    expect(value('gatehouse_device_login_duration_seconds_count{entry="ssh"}')).toBeGreaterThan(2);
    expect(value("gatehouse_gateway_memory_bytes")).toBeGreaterThan(10_000_000);
    expect(value("gatehouse_gateway_waiting_entries")).toBeGreaterThanOrEqual(0);
    expect(value("gatehouse_gateway_refused_key_exchanges_total")).toBe(0);
  });

  // This test must be the last test, because it stops the service.
  it("continue while the service stops, show a notice, and delay the stop until they end", async () => {
    const window = openWindow(80, 24);
    window.type("echo $((6 * 7)) begun");
    await window.untilShown("42 begun");
    process.kill(target.fleet.service.pid, "SIGTERM");
    await window.untilShown("This session ends in 30 seconds.");
    expect((await target.ssh({ command: "true" })).code).toBe(255);
    // A load balancer sends no new requests, and the API still responds.
    expect((await call(target.fleet.service, "GET /readyz")).body).toEqual({
      message: "the service is being stopped",
    });
    expect((await call(target.fleet.service, "GET /info")).status).toBe(200);
    window.type("echo $((6 * 7)) goes on; exit");
    await window.untilShown("42 goes on");
    expect(await window.code).toBe(0);
    expect(await target.fleet.service.ended).toBe(0);
  });
});
