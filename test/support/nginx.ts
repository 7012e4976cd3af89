import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "./listening.ts";

/** Where Debian's package has the module that passes TCP on. */
const STREAM = "/usr/lib/nginx/modules/ngx_stream_module.so";

/** Why tests with nginx cannot run; undefined where they can. */
export const withoutNginx: string | undefined = (() => {
  const { error, stderr } = spawnSync("nginx", ["-V"], { encoding: "utf8" });
  if (error) return "there is no nginx on the PATH";
  const isBuiltIn = /--with-stream(?!=dynamic)(\s|$)/.test(stderr);
  return isBuiltIn || existsSync(STREAM) ? undefined : "nginx has no stream module";
})();

/** What an nginx is run with. */
export interface NginxOptions {
  /** For its files; nobody else may write there. */
  readonly folder: string;
  /** Files of configuration within `http` and within `stream`. */
  readonly http: string;
  readonly stream: string;
  /** What stands in these files, and what stands there here; `ports` are of nginx itself. */
  readonly substitutes: (ports: readonly number[]) => readonly (readonly [RegExp, string])[];
  /** How many ports it listens on. */
  readonly ports: number;
}

/** An nginx that runs as a process of its own. */
export interface TestNginx {
  readonly ports: readonly number[];
  stop(): Promise<void>;
}

/** How often other ports are taken, where something else has taken one meanwhile. */
const ATTEMPTS = 5;

/** Starts nginx with configuration files of the project, in which names, files and ports are others. */
export async function startNginx(options: NginxOptions): Promise<TestNginx> {
  for (let attempt = 1; ; attempt += 1) {
    const ports = await Promise.all(Array.from({ length: options.ports }, freePort));
    const started = await start(options, ports);
    if (typeof started !== "string") return { ports, stop: () => stop(started) };
    if (!started.includes("Address already in use") || attempt === ATTEMPTS) throw new Error(started);
  }
}

/** The process once it serves; what it said where it has ended. */
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
  let said = "";
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", () => resolve(said));
    child.stderr.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes("start worker process ")) resolve(child);
    });
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.on("close", resolve));
  child.kill("SIGTERM");
  await ended;
}
