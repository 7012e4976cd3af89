// Reads and writes bills of materials in the CycloneDX format. npm and an esbuild plugin create the bills.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A bill of materials, limited to the fields that the release uses. */
export interface Bill {
  readonly metadata: { readonly component: Component };
  readonly components: Component[];
  readonly dependencies: { readonly ref: string; readonly dependsOn?: string[] }[];
}

/** A library in a bill of materials, or the package or program that the bill describes. */
export interface Component {
  readonly "bom-ref": string;
  readonly purl: string;
  licenses?: readonly { license?: { id?: string; name?: string }; expression?: string }[];
  /**
   * The license files of the component, in base64. npm's bills do not contain license files, and `writeBill` omits
   * them.
   */
  readonly evidence?: { readonly licenses?: readonly { license: { text: { content: string } } }[] };
}

/**
 * Licenses of libraries whose package.json specifies no license. A developer determined each license from the file
 * LICENSE of the library.
 */
const LICENSES_READ: Readonly<Record<string, string>> = {
  "pkg:npm/%40logdna/tail-file@2.2.0": "MIT",
  "pkg:npm/buildcheck@0.0.7": "MIT",
  "pkg:npm/cpu-features@0.0.10": "MIT",
  "pkg:npm/ssh2@1.17.0": "MIT",
};

/**
 * Returns the license of a component: the SPDX identifier, or the license string in its package.json. Returns an empty
 * string if the license is unknown.
 */
export const licenseOf = ({ licenses = [] }: Pick<Component, "licenses">): string =>
  licenses.map(({ license, expression }) => expression ?? license?.id ?? license?.name ?? "").join(" AND ");

/** Parses a bill of materials, and adds the manually determined licenses. */
export function readBill(text: string): Bill {
  const bill = JSON.parse(text) as Bill;
  for (const component of bill.components) {
    const id = LICENSES_READ[component.purl];
    if (id !== undefined) component.licenses = [{ license: { id } }];
  }
  return bill;
}

/**
 * Parses the bill of materials of a bundled program. The esbuild plugin writes the repository as the subject of the
 * bill, so this function replaces the subject with the program.
 */
export function readProgramBill(text: string, name: string): Bill {
  const { "bom-ref": ref } = (JSON.parse(text) as Bill).metadata.component;
  const own = ref.replace(/^.*@([^@#]+)#.*$/, `${name}@$1`);
  // Removes repository addresses from the package URLs (purls), so that the purls match the purls that npm writes.
  const bill = readBill(text.replaceAll(ref, own).replaceAll(/\?vcs_url=[^"]*/g, ""));
  Object.assign(bill.metadata.component, { name, purl: `pkg:generic/${own}` });
  return bill;
}

/**
 * Writes a bill of materials. Omits license files and values that differ between builds: serial number, time, and
 * archive folders.
 */
export async function writeBill(out: string, name: string, bill: Bill): Promise<void> {
  const omitted = ["serialNumber", "timestamp", "evidence"];
  const text = JSON.stringify(bill, (key, value) => (omitted.includes(key) ? undefined : value), 2);
  await writeFile(
    join(out, `${name}.cdx.json`),
    `${text.replaceAll(/"file:[^"]*\/([^"/]+)"/g, '"file:$1"')}\n`,
  );
}

/** Returns the license texts of a component. */
export const licenseTexts = ({ evidence }: Component): string[] =>
  (evidence?.licenses ?? []).map(({ license }) =>
    Buffer.from(license.text.content, "base64").toString().trim(),
  );
