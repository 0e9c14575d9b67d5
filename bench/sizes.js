/** What a peer costs before it runs: the time of its import, its size on disk, the size of a bundle. */
import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { brotliCompressSync } from "node:zlib";
import { build } from "esbuild";
import { median } from "./measure.js";

const BENCH = dirname(fileURLToPath(import.meta.url));
const ROOT = dirname(BENCH);
const ROUNDS = 7;

/** Where the bare loop and the peers are imported from. */
const entryOf = (module) => (module === "turnloop" ? pathToFileURL(join(ROOT, "dist/index.js")).href : module);

export function versionOf(module) {
  return readManifest(folderOf(module)).version;
}

/** For each peer the median milliseconds of `import()` in a new process. */
export function importTimes(peers) {
  const times = new Map(peers.map(({ module }) => [module, []]));
  for (let round = -1; round < ROUNDS; round++) {
    for (const module of times.keys()) {
      const script = `const start = performance.now(); await import(${JSON.stringify(entryOf(module))}); console.log(performance.now() - start); process.exit()`;
      const ms = Number(execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: BENCH }));
      if (round >= 0) times.get(module).push(ms);
    }
  }
  return new Map([...times].map(([module, values]) => [module, median(values)]));
}

/** Bytes of the published files and of all the packages they depend on, and how many packages that are. */
export function installedSize(module) {
  const folders = new Set();
  const visit = (folder) => {
    if (folders.has(folder)) return;
    folders.add(folder);
    const { dependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = readManifest(folder);
    const peers = Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional);
    for (const name of [...Object.keys(dependencies), ...peers]) {
      const dependency = find(folder, name);
      if (dependency) visit(dependency);
    }
  };
  visit(folderOf(module));
  let bytes = 0;
  for (const folder of folders) bytes += folder === ROOT ? packedSize() : sizeOf(folder);
  return { bytes, packages: folders.size };
}

/** Bytes of what an app bundles that uses the peer as here, minified and compressed with brotli. */
export async function bundleSize({ module, uses }) {
  const contents = `export { ${uses.join(", ")} } from ${JSON.stringify(module === "turnloop" ? "./dist/index.js" : module)};`;
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: module === "turnloop" ? ROOT : BENCH },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "silent",
  });
  const [{ contents: bundle }] = outputFiles;
  return { minified: bundle.length, brotli: brotliCompressSync(bundle).length };
}

const readManifest = (folder) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

const folderOf = (module) => (module === "turnloop" ? ROOT : find(BENCH, module));

/** As Node looks a package up, also one that does not export its package.json. */
function find(from, name) {
  for (let folder = realpathSync(from); ; folder = dirname(folder)) {
    const candidate = join(folder, "node_modules", name);
    if (existsSync(join(candidate, "package.json"))) return realpathSync(candidate);
    if (folder === dirname(folder)) return undefined;
  }
}

function packedSize() {
  const output = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "ignore"],
  });
  return JSON.parse(output)[0].unpackedSize;
}

/** Without the packages inside it, which are counted on their own. */
function sizeOf(folder) {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name === "node_modules") continue;
    const path = join(folder, entry.name);
    bytes += entry.isDirectory() ? sizeOf(path) : lstatSync(path).size;
  }
  return bytes;
}
