import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { createAsset, type Asset } from '#api/edge/assets.ts'
import { consolePage } from '#api/console/page.ts'

const root = new URL('../../', import.meta.url)

/** Written for both sides: what the browser takes from outside the console's own folder. */
const sharedSources = [
  'api/client/client.ts',
  'shared/core/provider-registry.ts',
  'shared/search/words/stem.ts',
  'shared/search/words/stop-words.ts',
]

/** What a module imports by name, and where its file is. */
const vendorFiles: Record<string, string> = {
  preact: 'preact',
  'preact/hooks': 'preact/hooks',
  htm: 'htm',
  uplot: 'uplot/dist/uPlot.esm.js',
}

const script = 'text/javascript; charset=utf-8'
const style = 'text/css; charset=utf-8'

/**
 * The console by path: its page, its modules without their types, its style sheets, and the libraries it
 * uses. Nothing is built before, and nothing comes from elsewhere. Takes a quarter of a second, once.
 */
export async function consoleFiles(): Promise<Record<string, Asset>> {
  const own = globSync('api/console/app/**/*.ts', { cwd: fileURLToPath(root) }).sort()
  const sources = [...own, ...sharedSources]
  const stripped = await stripTypes(sources.map(file => new URL(file, root).href))
  const modules = sources.map((file, index) => [servedPath(file), stripped[index]!] as const)
  const libraries = Object.entries(vendorFiles).map(
    ([name, file]) => [servedPath(name), readText(import.meta.resolve(file))] as const,
  )
  const sheets = ['tokens', 'frame', 'parts', 'pages']
    .map(name => readText(new URL(`style/${name}.css`, import.meta.url)))
    .concat(readText(import.meta.resolve('uplot/dist/uPlot.min.css')))
  // Each module names others, so a browser would find them one depth after the other.
  const preloadPaths = [...modules, ...libraries]
    .map(([path]) => path)
    .filter(path => !lazyLoaded.test(path))
  return {
    '/console': createAsset('text/html; charset=utf-8', consolePage(preloadPaths)),
    '/console/style.css': createAsset(style, sheets.join('\n')),
    ...Object.fromEntries(
      [...modules, ...libraries].map(([path, text]) => [
        path,
        createAsset(script, rewriteImports(text)),
      ]),
    ),
  }
}

/** Only the page with charts asks for these. */
const lazyLoaded = /uplot/

const readText = (file: string | URL): string => readFileSync(new URL(file), 'utf8')

function stripTypes(files: string[]): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('strip.ts', import.meta.url), {
      workerData: files,
      execArgv: ['--disable-warning=ExperimentalWarning'],
    })
    worker.once('message', resolve)
    worker.once('error', reject)
  })
}

/** Where a module is served: those of the console by their place in it, others by their place here. */
const servedPath = (file: string): string =>
  file.startsWith('api/console/')
    ? file.replace('api/', '/')
    : file.endsWith('.ts')
      ? `/console/lib/${file}`
      : `/console/lib/${file}.js`

/** Names of modules become their addresses; what points at source maps, which are not served, goes. */
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
    .replace(/^\/\/# sourceMappingURL=.*$/m, '')
