import { readFileSync } from "node:fs";
import { createRequire, registerHooks } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

interface Fix {
  readonly library: string;
  readonly fixed: string;
}

/**
 * Fixes for errors of ssh2 1.17.0, by the files of the library. The server and the agent depend on exactly this
 * version, because the library must contain each of these texts.
 */
const FIXES: Readonly<Record<string, readonly Fix[]>> = {
  // OpenSSH accepts packets of up to 256 KiB. The library closes the connection at a command of 35 kB.
  "protocol/crypto.js": [
    { library: "const MAX_PACKET_SIZE = 35000;", fixed: "const MAX_PACKET_SIZE = 256 * 1024;" },
  ],
  // The list lacks a comma, so clients do not find ECDSA-521 and rsa-sha2-512 in it. The fix also removes SHA-1.
  "protocol/Protocol.js": [
    {
      library: "+ 'rsa-sha2-512,rsa-sha2-256,ssh-rsa,ssh-dss';",
      fixed: "+ ',rsa-sha2-512,rsa-sha2-256';",
    },
  ],
  "server.js": [
    // The library offers SHA-1 signatures with every RSA host key, regardless of the list of algorithms.
    { library: "sha1Pos = Infinity;", fixed: "sha1Pos = -1;" },
    // The library refuses channels without a reason, so a client cannot show one.
    { library: "const reject = () => {", fixed: "const reject = (code, text = '') => {" },
    {
      library: "proto.channelOpenFail(info.sender, reason, '');",
      fixed: "proto.channelOpenFail(info.sender, code ?? reason, text);",
    },
  ],
  // The library starts to read terminal modes at the second byte and therefore finds none. With the fix, it passes
  // the modes on as bytes.
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
 * Loads ssh2 with the fixes. A request for a terminal has `modes` as bytes (RFC 4254, section 8). A server refuses a
 * channel with `reject(code, text)` (section 5.1).
 * @param importer URL of a module in a package that depends on ssh2 1.17.0
 * @throws Error when the library has another version
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
