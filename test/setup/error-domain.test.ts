import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import t from 'tap'

t.test('an error that no code catches fails the test that runs, and the file goes on', async t => {
  const text = `import t from 'tap'
    const pause = () => new Promise(resolve => setTimeout(resolve, 20))
    t.test('outer', async t => {
      await t.test('throws later', async t => {
        setTimeout(() => { throw new Error('thrown later') })
        await pause()
      })
      await t.test('rejects', async t => {
        void Promise.reject(new Error('not awaited'))
        await pause()
      })
      await t.test('is well', async t => { t.pass() })
    })`
  const file = join(t.testdir({ 'a.test.ts': text }), 'a.test.ts')
  const args = ['test/setup/run.ts', '--processes', '1', file]
  const { stdout, status } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  const output = stripVTControlCharacters(stdout)
  t.match(output, '> outer > throws later > thrown later\n')
  t.match(output, '> outer > rejects > not awaited\n')
  t.match(output, '1 passed, 2 failed, 0 skipped')
  t.equal(status, 1)
})
