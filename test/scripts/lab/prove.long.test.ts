import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import '#test/setup/env.ts'

// Four processes are started, killed and started again; the whole proof is for a machine of its own.

const run = promisify(execFile)
const folder = t.testdir({})

t.test('the short form of the proof holds, and its page tells every section asked for', async t => {
  const page = join(folder, 'PROOF.md')
  const { stdout } = await run(
    process.execPath,
    [
      'scripts/lab/prove.ts',
      '--minutes',
      '0.5',
      '--rate',
      '10',
      '--page',
      page,
      '--only',
      'kills,tenants,malformed,deletions,load',
    ],
    { env: { ...process.env, NODE_OPTIONS: '' } },
  )
  t.match(stdout, /Everything held/)
  const text = readFileSync(page, 'utf8')
  t.same(text.match(/(?<=^## ).+/gm), [
    'kills: held',
    'tenants: held',
    'malformed: held',
    'deletions: held',
    'load: held',
  ])
  for (const [, name, figure] of text.matchAll(
    /^\| (kills|operations|requests|deletions|exchanges acknowledged) \| ([\d,]+)/gm,
  )) {
    t.ok(Number(figure!.replaceAll(',', '')) > 0, String(name))
  }
})

t.test('what it does not know is refused', async t => {
  const refused = run(process.execPath, [
    'scripts/lab/prove.ts',
    '--only',
    'miracles',
    '--minutes',
    '0',
  ])
  await t.rejects(refused, { code: 2, stderr: /No such section: miracles\n.*--minutes takes/s })
})
