import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "./listening.ts";

/** The path of nginx's TCP module on Debian. */
const STREAM = "/usr/lib/nginx/modules/ngx_stream_module.so";

/** The reason why tests with nginx cannot run. Undefined if they can run. */
export const withoutNginx: string | undefined = (() => {
  const { error, stderr } = spawnSync("nginx", ["-V"], { encoding: "utf8" });
  if (error) return "nginx is not on the PATH";
  const isBuiltIn = /--with-stream(?!=dynamic)(\s|$)/.test(stderr);
  return isBuiltIn || existsSync(STREAM) ? undefined : "nginx has no stream module";
})();

/** The folder and the configuration of an nginx process. */
interface NginxOptions {
  /** The folder of nginx's files. Other users must not have write access to this folder. */
  readonly folder: string;
  /** Names of the configuration files for the sections `http` and `stream`. */
  readonly http: string;
  readonly stream: string;
  /** Returns replacements for texts in the configuration files. `ports` are the ports on which nginx listens. */
  readonly substitutes: (ports: readonly number[]) => readonly (readonly [RegExp, string])[];
  /** Number of ports that nginx listens on. */
  readonly ports: number;
}

/** An nginx process. */
export interface TestNginx {
  readonly ports: readonly number[];
  stop(): Promise<void>;
}

/** Maximum number of attempts to start nginx, since another process can take a port before nginx does. */
const ATTEMPTS = 5;

/**
 * Starts nginx with configuration files of the project. Replaces the host names, file paths and ports in these files.
 */
export async function startNginx(options: NginxOptions): Promise<TestNginx> {
  for (let attempt = 1; ; attempt += 1) {
    const ports = await Promise.all(Array.from({ length: options.ports }, freePort));
    const started = await start(options, ports);
    if (typeof started !== "string") return { ports, stop: () => stop(started) };
    if (!started.includes("Address already in use") || attempt === ATTEMPTS) throw new Error(started);
  }
}

/** Returns the process when it accepts connections, or its output if it has ended. */
async function start(options: NginxOptions, ports: readonly number[]): Promise<ChildProcess | string> {
  const { folder, substitutes } = options;
  const written = (name: "http" | "stream") => {
    const text = substitutes(ports).reduce(
      (all, [from, to]) => all.replaceAll(from, to),
      readFileSync(options[name], "utf8"),
    );
    const file = join(folder, `${name}.conf`);
    writeFileSync(file, text);
    return file;
  };
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  mkdirSync(join(folder, "tmp"), { recursive: true });
  const main = [
    ...(existsSync(STREAM) ? [`load_module ${STREAM};`] : []),
    "daemon off;",
    "worker_processes 1;",
    `pid ${join(folder, "nginx.pid")};`,
    "error_log stderr notice;",
    "events { worker_connections 1024; }",
    "http {",
    "  access_log off;",
    ...temporary.map((name) => `  ${name}_temp_path ${join(folder, "tmp", name)};`),
    `  include ${written("http")};`,
    "}",
    `stream { include ${written("stream")}; }`,
  ];
  const file = join(folder, "nginx.conf");
  writeFileSync(file, `${main.join("\n")}\n`);
  const child = spawn("nginx", ["-p", folder, "-c", file, "-e", "stderr"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let output = "";
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", () => resolve(output));
    child.stderr.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes("start worker process ")) resolve(child);
    });
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.on("close", resolve));
  child.kill("SIGTERM");
  await ended;
}
