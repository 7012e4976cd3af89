import { readFileSync } from "node:fs";
import { createRequire, registerHooks } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

interface Fix {
  readonly library: string;
  readonly fixed: string;
}

/**
 * Errors of ssh2 1.17.0, by the files of the library. The server and the agent depend on exactly this version, because
 * each of these texts must be in it.
 */
const FIXES: Readonly<Record<string, readonly Fix[]>> = {
  // OpenSSH takes packets up to 256 KiB. The library closes the connection at a command of 35 kB.
  "protocol/crypto.js": [
    { library: "const MAX_PACKET_SIZE = 35000;", fixed: "const MAX_PACKET_SIZE = 256 * 1024;" },
  ],
  // The list lacks a comma, so that clients do not find ECDSA-521 and rsa-sha2-512 in it. SHA-1 is not accepted at all.
  "protocol/Protocol.js": [
    {
      library: "+ 'rsa-sha2-512,rsa-sha2-256,ssh-rsa,ssh-dss';",
      fixed: "+ ',rsa-sha2-512,rsa-sha2-256';",
    },
  ],
  "server.js": [
    // The library offers signatures by SHA-1 with every RSA host key, whatever the list of algorithms is.
    { library: "sha1Pos = Infinity;", fixed: "sha1Pos = -1;" },
    // The library refuses channels without a reason that the client could show.
    { library: "const reject = () => {", fixed: "const reject = (code, text = '') => {" },
    {
      library: "proto.channelOpenFail(info.sender, reason, '');",
      fixed: "proto.channelOpenFail(info.sender, code ?? reason, text);",
    },
  ],
  // The library begins to read terminal modes at the second byte, so that it finds none. It hands them on unread now.
  "protocol/handlers.misc.js": [
    {
      library: "bufferParser.init(modesBinary, 1);",
      fixed: "bufferParser.init(modesBinary, modesBinary.length);",
    },
    {
      library: "data = { term, cols, rows, width, height, modes };",
      fixed: "data = { term, cols, rows, width, height, modes: modesBinary };",
    },
  ],
};

/**
 * Loads ssh2 with its errors fixed. A request for a terminal has `modes` as bytes (RFC 4254, section 8). A server refuses
 * a channel by `reject(code, text)` (section 5.1).
 * @param importer URL of a module whose package depends on ssh2 1.17.0
 * @throws Error the library is another version
 */
export function loadSsh2(importer: string): unknown {
  const require = createRequire(importer);
  const folder = dirname(require.resolve("ssh2"));
  const fixes = new Map(
    Object.entries(FIXES).map(([file, list]) => [pathToFileURL(join(folder, file)).href, list]),
  );
  const hooks = registerHooks({
    load(url, context, next) {
      const list = fixes.get(url);
      fixes.delete(url);
      return list === undefined
        ? next(url, context)
        : { format: "commonjs", source: fix(url, list), shortCircuit: true };
    },
  });
  // A test may have loaded the library without the fixes.
  for (const path of Object.keys(require.cache)) {
    if (path.startsWith(folder)) delete require.cache[path];
  }
  let library: unknown;
  try {
    library = require("ssh2");
  } finally {
    hooks.deregister();
  }
  if (fixes.size > 0) throw new Error(`this version of ssh2 lacks ${[...fixes.keys()].join(", ")}`);
  return library;
}

function fix(url: string, list: readonly Fix[]): string {
  let source = readFileSync(fileURLToPath(url), "utf8");
  for (const { library, fixed } of list) {
    if (source.split(library).length !== 2)
      throw new Error(`this version of ssh2 lacks ${library} in ${url}`);
    source = source.replace(library, () => fixed);
  }
  return source;
}
