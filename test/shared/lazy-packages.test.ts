import { execFileSync } from 'node:child_process'
import t from 'tap'

/** Packages that most processes never need, with what their loading costs in CPU and memory. */
const lazyPackages = {
  openai: '0.25 s, 35 MB',
  '@anthropic-ai/sdk': '0.25 s, 27 MB',
  '@google/generative-ai': '0.02 s',
  undici: '0.15 s, 30 MB',
  '@modelcontextprotocol/server': '0.2 s, 34 MB',
}

/** Prints the packages that were loaded, in a process that has loaded nothing else. */
const script = `
  import { registerHooks } from 'node:module'
  const loaded = new Set()
  registerHooks({
    load(url, context, next) {
      const name = /\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1]
      if (name) loaded.add(name)
      return next(url, context)
    },
  })
  await import('#api/app.ts')
  await import('#workers/handlers.ts')
  await import('#shared/backend.ts')
  process.stdout.write(JSON.stringify([...loaded]), () => process.exit())
`

t.test('a process loads them with their first use, not at its start', async t => {
  const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
    encoding: 'utf8',
  })
  const loaded = new Set(JSON.parse(printed) as string[])
  t.ok(loaded.has('mongodb'), 'what is loaded is seen')
  for (const [name, cost] of Object.entries(lazyPackages)) t.notOk(loaded.has(name), cost)
})
