import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ingestText, startService, type StartedService } from '#test/support/npm-start.ts'
import { waitUntil } from '#test/support/wait-until.ts'

// Of the runner's own npm; a terminal has none of it.
for (const name of Object.keys(process.env)) if (/^npm_/i.test(name)) delete process.env[name]

function folder(t: Test): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'vault-npm-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  return dataDir
}

const npmStart = (t: Test, dataDir: string): Promise<StartedService> =>
  startService(t, dataDir, {}, ['npm', 'start', '--no-update-notifier'])

const answers = ({ credentials }: StartedService): Promise<boolean> =>
  fetch(`${credentials.base_url}/health`).then(
    async response => (await response.text(), response.ok),
    () => false,
  )

t.test('SIGTERM to npm drains the service, then npm ends', async t => {
  const dataDir = folder(t)
  const first = await npmStart(t, dataDir)
  t.equal((await ingestText(first.client, 'The gate creaks')).status, 200)
  first.child.kill('SIGTERM')
  t.equal(await first.exit, 0, first.output())
  t.notOk(await answers(first), 'nothing answers once npm has ended')

  const second = await npmStart(t, dataDir)
  t.ok(await answers(second), 'nor does anything hold the folder')
  second.child.kill('SIGKILL')
  await waitUntil(
    'the service has followed an npm that was killed',
    async () => !(await answers(second)),
  )
  await waitUntil('its folder is free', async () => {
    const third = await startService(t, dataDir).catch(() => null)
    third?.child.kill('SIGTERM')
    return (await third?.exit) === 0
  })
  t.pass('and can be used again')
})
