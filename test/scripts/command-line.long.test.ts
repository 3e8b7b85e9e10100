import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import t from 'tap'

const root = new URL('../../', import.meta.url)
const programs = globSync(['scripts/{,clients/}*.ts', 'scripts/lab/{prove,bench/index}.ts'], {
  cwd: root.pathname,
}).filter(file =>
  /Usage: (?:node|npm)|command-line\.ts'/.test(readFileSync(new URL(file, root), 'utf8')),
)

type Ended = { code: unknown; stdout: string; stderr: string }

/** Runs a script with no environment but this. */
const run = (file: string, options: string[], more: Record<string, string> = {}): Promise<Ended> =>
  new Promise(resolve => {
    const { PATH = '', NODE_COMPILE_CACHE } = process.env
    const env = { PATH, NODE_COMPILE_CACHE, ...more }
    const child = execFile(
      process.execPath,
      [file, ...options],
      { cwd: root, env },
      (error, ...said) => resolve({ code: error?.code ?? 0, stdout: said[0], stderr: said[1] }),
    )
    child.stdin?.end()
  })

t.test('every command has --help, and refuses what it does not know with its usage', async t => {
  t.ok(programs.length > 10, programs.join(' '))
  for (const file of programs) {
    const [help, bogus] = await Promise.all([run(file, ['--help']), run(file, ['--bogus'])])
    t.match(help, { code: 0, stdout: /^Usage: [\s\S]*\n {2}--help {2,}/, stderr: '' }, file)
    t.match(bogus, { code: 2, stdout: '', stderr: /--bogus[\s\S]*\n\nUsage: /i }, file)
  }
})

t.test('the release refuses providers that cannot be used, with every other fault', async t => {
  const { code, stderr } = await run('scripts/migrate.ts', [], {
    PROVIDERS: 'lab,other',
    OTHER_BASE_URL: 'http://other/v1?key=secret',
    EMBEDDINGS: 'labs/m',
  })
  t.equal(code, 1)
  for (const fault of [
    'LAB_BASE_URL is missing',
    'OTHER_BASE_URL must',
    'EMBEDDINGS must',
    'MASTER_KEY',
  ])
    t.match(stderr, fault)
  t.notMatch(stderr, 'secret')
})
