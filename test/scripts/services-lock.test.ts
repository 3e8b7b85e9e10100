import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { acquireLock } from '#scripts/services/file-lock.ts'

t.test('one holder at a time, until it lets go', async t => {
  const file = join(t.testdir(), 'lock')
  const release = acquireLock(file, 0)
  t.ok(release)
  t.equal(acquireLock(file, 0), undefined)
  release!()
  release!()
  const again = acquireLock(file, 0)
  t.ok(again)
  again!()
})

t.test('a holder that is killed holds nothing', async t => {
  const file = join(t.testdir(), 'lock')
  const program = `
    import { acquireLock } from '#scripts/services/file-lock.ts'
    acquireLock(process.argv[1], 0)
    globalThis.gc()
    process.send('held')
    setInterval(() => {}, 1000)
  `
  const flags = ['--expose-gc', '--input-type=module', '-e', program, file]
  const holder = spawn(process.execPath, flags, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  t.teardown(() => holder.kill('SIGKILL'))
  await once(holder, 'message')
  t.equal(acquireLock(file, 0), undefined, 'held even when the release was dropped and collected')

  holder.kill('SIGKILL')
  await once(holder, 'exit')
  const release = acquireLock(file, 0)
  t.ok(release, 'without anyone having cleaned up')
  release!()
})
