import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { createAsset, type Asset } from '#api/edge/assets.ts'
import { consolePage, consolePolicy, modulePage } from '#api/console/page.ts'
import { stopWords } from '#shared/search/words/stop-words.ts'

const root = new URL('../../', import.meta.url)

/** Sources outside the console's folder that the browser loads, too. */
const sharedSources = [
  'api/client/adapters/long-texts.ts',
  'api/client/client.ts',
  'api/client/programs/config-texts.ts',
  'api/client/programs/programs.ts',
  'api/client/programs/snippets.ts',
  'shared/core/dates.ts',
  'shared/core/errors.ts',
  'shared/core/refusals.ts',
  'shared/search/words/stem.ts',
  'shared/vault/bulk/split-lines.ts',
]

/** The English stop words as a module of their own: their source reads files, which a browser cannot. */
const stopWordsModule = [
  servedPath('shared/search/words/stop-words.ts'),
  `export const stopWords = new Set(${JSON.stringify([...stopWords])})`,
] as const

/** Tables as modules: not all browsers import JSON. */
const tables = [
  'api/client/programs/programs.json',
  'shared/domain/profile-kinds.json',
  'shared/events/account-actions.json',
  'shared/search/words/stem.json',
  ...globSync('api/console/app/**/*.json', { cwd: fileURLToPath(root) }),
].map(file => {
  const table: unknown = JSON.parse(readText(new URL(file, root)))
  return [servedPath(file), `export default ${JSON.stringify(table)}`] as const
})

/** Packages that modules import, with the file of each. */
const vendorFiles: Record<string, string> = {
  preact: 'preact',
  'preact/hooks': 'preact/hooks',
  htm: 'htm',
  uplot: 'uplot/dist/uPlot.esm.js',
}

/**
 * The files of the console by path: its page, that of the API reference, its modules without types, its style sheets and its
 * libraries. There is no build step and no external file. Takes 250 ms, once.
 */
export async function consoleFiles(
  login: string | null = null,
): Promise<{ policy: string; assets: Record<string, Asset> }> {
  const own = globSync('api/console/app/**/*.ts', { cwd: fileURLToPath(root) }).sort()
  // Documents are read by the service.
  const importers = globSync('api/import/{*,formats/*,send/*}.ts', {
    cwd: fileURLToPath(root),
  }).sort()
  const sources = [...own, ...importers, ...sharedSources]
  const [inlineScript, ...stripped] = await stripTypes(
    ['api/console/boot.ts', ...sources].map(file => new URL(file, root).href),
  )
  const modules = sources.map((file, index) => [servedPath(file), stripped[index]!] as const)
  const libraries = Object.entries(vendorFiles).map(
    ([name, file]) => [servedPath(name), readText(import.meta.resolve(file))] as const,
  )
  const sheets = ['tokens', 'frame', 'parts', 'pages']
    .map(name => readText(new URL(`style/${name}.css`, import.meta.url)))
    .concat(readText(import.meta.resolve('uplot/dist/uPlot.min.css')))
  const texts = new Map(
    [...modules, stopWordsModule, ...tables, ...libraries].map(
      ([path, text]) => [path, rewriteImports(text)] as const,
    ),
  )
  // Without preloading, a browser would load the modules one level of imports after the other.
  const partsOf = (module: string) => ({ module, preloadPaths: [...importedBy(module, texts)] })
  const door = { title: 'Memory Vault', inlineScript: inlineScript!, login }
  const pages = {
    '/console': consolePage({ ...door, ...partsOf('/console/app/main.ts') }),
    '/docs': modulePage({
      title: 'API reference · Memory Vault',
      ...partsOf('/console/app/reference/reference.ts'),
    }),
  }
  const assetsOf = (files: Iterable<[string, string]>, type: string) =>
    Object.fromEntries([...files].map(([path, text]) => [path, createAsset(type, text)]))
  return {
    policy: consolePolicy(inlineScript!),
    assets: {
      ...assetsOf(Object.entries(pages), 'text/html; charset=utf-8'),
      ...assetsOf([['/console/style.css', sheets.join('\n')]], 'text/css; charset=utf-8'),
      ...assetsOf(texts, 'text/javascript; charset=utf-8'),
    },
  }
}

/** A module and all that it imports statically, by path; what `import()` loads comes when it is asked for. */
function importedBy(path: string, texts: ReadonlyMap<string, string>, found = new Set<string>()) {
  if (found.has(path)) return found
  found.add(path)
  for (const [, , name] of texts.get(path)!.matchAll(/\b(?:from|import) ?(['"])([^'"\n]+)\1/g)) {
    if (texts.has(name!)) importedBy(name!, texts, found)
  }
  return found
}

function readText(file: string | URL): string {
  return readFileSync(new URL(file), 'utf8')
}

function stripTypes(files: string[]): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('strip.ts', import.meta.url), {
      workerData: files,
      execArgv: ['--disable-warning=ExperimentalWarning'],
    })
    // With `node --watch` messages of Node itself come, too.
    worker.on('message', (message: string[] | object) => Array.isArray(message) && resolve(message))
    worker.once('error', reject)
  })
}

/** The URL path of a module: below `/console` for its own files, else below `/console/lib`. */
function servedPath(file: string): string {
  if (file.startsWith('api/console/')) return file.replace('api/', '/')
  return file.endsWith('.ts') ? `/console/lib/${file}` : `/console/lib/${file}.js`
}

/** Replaces module names by URL paths, and removes the links to source maps, which are not served. */
const rewriteImports = (text: string): string =>
  text
    .replaceAll(
      /(\bfrom ?|\bimport ?\(?)(['"])([^'"\n]+)\2/g,
      (whole, before: string, _, name: string) =>
        name.startsWith('#')
          ? `${before}'${servedPath(name.slice(1))}'`
          : vendorFiles[name]
            ? `${before}'${servedPath(name)}'`
            : whole,
    )
    // A table beside a module that is not the console's.
    .replaceAll(/(from '\.\/[\w-]+\.json)'/g, "$1.js'")
    .replace(/ with \{ type: 'json' \}/g, '')
    .replace(/^\/\/# sourceMappingURL=.*$/m, '')
