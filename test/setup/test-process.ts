// One of the processes that share the files of a run: it asks run.ts for the next file, imports it and reports
// TAP on stdout, a subtest per file. Modules are loaded once per process in place of once per file.
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import type { Test } from 'tap'
import { followTests, takeTouched } from '#test/support/checks/promises.ts'
import { takeScopeViolations } from '#test/support/checks/watch-scopes.ts'

/** A whole file; it only tells a hang. */
const FILE_TIMEOUT_MS = 600_000

/** The seed of random input in the quick run, which depends on nothing but the code; long files have a fresh one. */
const QUICK_SEED = 20_261_125

/**
 * Memory with which a process takes no further file; another takes its place. Modules stay in a process for good, and
 * what they hold with them.
 */
const FULL_MIB = 400

/** The test of each file by its URL: what the file imports as `tap`. */
const tests = new Map<string, Test>()
Object.assign(globalThis, { testOfFile: (url: string) => tests.get(url) })

const domainUrl = new URL('error-domain.ts', import.meta.url).href

registerHooks({
  resolve(specifier, context, next) {
    if (specifier === 'async-hook-domain') return { url: domainUrl, shortCircuit: true }
    const parent = context.parentURL ?? ''
    if (specifier !== 'tap' || !tests.has(parent)) return next(specifier, context)
    const source = `export default globalThis.testOfFile(${JSON.stringify(parent)})`
    const url = `data:text/javascript,${encodeURIComponent(source)}`
    return { url, format: 'module', shortCircuit: true }
  },
})

// After the hook.
const { default: root } = await import('tap')

let take: (file: string | null) => void
process.on('message', (text: string) => take(JSON.parse(text) as string | null))
// The library lets the channel go; a file may wait for what does not keep a process.
setInterval(() => {}, 60_000)

root.setTimeout(0)
for (let file = await nextFile(); file !== null; file = await nextFile()) await runFile(file)
root.end()
// What a file left open does not keep the process.
process.stdout.write('', () => process.exit())

/** Tells what the last file touched. @returns the next one that no other process has taken; null: none is left. */
function nextFile(): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  take = resolve
  const isFull = tests.size > 0 && process.memoryUsage.rss() > FULL_MIB * 2 ** 20
  process.send!({ touched: takeTouched(), isFull })
  return promise
}

async function runFile(file: string): Promise<void> {
  fc.configureGlobal(file.endsWith('.long.test.ts') ? {} : { seed: QUICK_SEED })
  await root.test(file, { timeout: FILE_TIMEOUT_MS }, async t => {
    const { href } = pathToFileURL(resolve(file))
    tests.set(href, t)
    followTests(file, t)
    await import(href)
  })
  for (const violation of takeScopeViolations()) root.fail(`${file}: ${violation}`)
  process.exitCode = 0
}
