import { readFileSync } from "node:fs";
import { createRequire, registerHooks } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

interface Fix {
  readonly library: string;
  readonly fixed: string;
}

/**
 * Fixes for bugs of ssh2 1.17.0, by file of the library. The server and the agent depend on exactly this version,
 * because each fix replaces a string in the source code of the library.
 */
const FIXES: Readonly<Record<string, readonly Fix[]>> = {
  // OpenSSH accepts packets of up to 256 KiB. Without this fix, the library closes the connection when it receives a
  // command of 35 kB.
  "protocol/crypto.js": [
    { library: "const MAX_PACKET_SIZE = 35000;", fixed: "const MAX_PACKET_SIZE = 256 * 1024;" },
  ],
  // The library's list of signature algorithms lacks a comma, so clients do not find ECDSA-521 and rsa-sha2-512 in the
  // list. The fix also removes the SHA-1 algorithms.
  "protocol/Protocol.js": [
    {
      library: "+ 'rsa-sha2-512,rsa-sha2-256,ssh-rsa,ssh-dss';",
      fixed: "+ ',rsa-sha2-512,rsa-sha2-256';",
    },
  ],
  "server.js": [
    // The library offers SHA-1 signatures with every RSA host key, regardless of the list of algorithms.
    { library: "sha1Pos = Infinity;", fixed: "sha1Pos = -1;" },
    // When a server refuses a channel, the library sends an empty description, so a client cannot show the reason. The
    // fix sends a description.
    { library: "const reject = () => {", fixed: "const reject = (code, text = '') => {" },
    {
      library: "proto.channelOpenFail(info.sender, reason, '');",
      fixed: "proto.channelOpenFail(info.sender, code ?? reason, text);",
    },
  ],
  // The library starts to read terminal modes at the second byte and therefore finds no modes. With the fix, the
  // library returns the modes as bytes.
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
 * Loads the library ssh2 with {@link FIXES}. In the loaded library, a terminal request contains `modes` as bytes (RFC
 * 4254, section 8), and a server can refuse a channel with `reject(code, text)` (section 5.1).
 * @param importer URL of a module in a package that depends on ssh2 1.17.0
 * @throws Error when the library has a different version
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
  // Node.js may have cached the unpatched library, because a test loaded it. Remove it from the module cache.
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
