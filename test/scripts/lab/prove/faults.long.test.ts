import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import '#test/setup/env.ts'

// Databases and whole installations are stopped, killed, put back and started again.
t.setTimeout(0)

const run = promisify(execFile)
const page = join(t.testdir({}), 'PROOF.md')

t.test('nothing is lost by the faults of databases, disks and clocks', async t => {
  const { DATABASE_URL: _postgres, MONGODB_URI: _mongo, ...env } = process.env
  const { stdout } = await run(
    process.execPath,
    [
      'scripts/lab/prove.ts',
      '--minutes',
      '0.1',
      '--rate',
      '10',
      '--page',
      page,
      '--only',
      'restarts,disk,clock,backup',
    ],
    { env: { ...env, NODE_OPTIONS: '' } },
  )
  t.match(stdout, /Everything held/)
  const text = readFileSync(page, 'utf8')
  t.match(
    text.match(/(?<=^## ).+/gm),
    // A full disk needs the right to mount a small one.
    ['restarts: held', /^disk: (?:held|not run)$/, 'clock: held', 'backup: held'],
  )
  const figures = [
    'databases (?:stopped|killed) and started',
    'jumps of a clock',
    'exchanges that the backup of MongoDB lacks',
    '[\\w ]*:? ?exchanges acknowledged',
  ]
  for (const figure of figures) {
    const values = [...text.matchAll(new RegExp(`^\\| ${figure} \\| ([\\d,]+)`, 'gm'))]
    const sum = values.reduce((total, [, value]) => total + Number(value!.replaceAll(',', '')), 0)
    t.ok(sum > 0, figure)
  }
})
