import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "./listening.ts";

/** Debian's path of the TCP module. */
const STREAM = "/usr/lib/nginx/modules/ngx_stream_module.so";

/** The reason why tests with nginx cannot run; undefined if they can. */
export const withoutNginx: string | undefined = (() => {
  const { error, stderr } = spawnSync("nginx", ["-V"], { encoding: "utf8" });
  if (error) return "nginx is not on the PATH";
  const isBuiltIn = /--with-stream(?!=dynamic)(\s|$)/.test(stderr);
  return isBuiltIn || existsSync(STREAM) ? undefined : "nginx has no stream module";
})();

/** Folder and configuration of an nginx. */
export interface NginxOptions {
  /** Folder of its files. Other users must not be able to write there. */
  readonly folder: string;
  /** Configuration files within `http` and within `stream`. */
  readonly http: string;
  readonly stream: string;
  /** Replacements in these files; `ports` are those of nginx itself. */
  readonly substitutes: (ports: readonly number[]) => readonly (readonly [RegExp, string])[];
  /** Number of ports that nginx listens on. */
  readonly ports: number;
}

/** An nginx process. */
export interface TestNginx {
  readonly ports: readonly number[];
  stop(): Promise<void>;
}

/** Maximum number of attempts if another process takes a port. */
const ATTEMPTS = 5;

/** Starts nginx with configuration files of the project, with replaced names, files and ports. */
export async function startNginx(options: NginxOptions): Promise<TestNginx> {
  for (let attempt = 1; ; attempt += 1) {
    const ports = await Promise.all(Array.from({ length: options.ports }, freePort));
    const started = await start(options, ports);
    if (typeof started !== "string") return { ports, stop: () => stop(started) };
    if (!started.includes("Address already in use") || attempt === ATTEMPTS) throw new Error(started);
  }
}

/** Returns the process once it serves, or its output if it has ended. */
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
