import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { getOrBuildCached } from '#scripts/services/cache.ts'

const makeSlowly = async (work: string) => {
  await mkdir(join(work, 'made'))
  await delay(20)
  await writeFile(join(work, 'made', 'content'), 'whole')
}

t.test('several at once end up with one whole thing, made where it can be', async t => {
  const dir = t.testdir({ 'not-a-folder': '' })
  const dirs = [join(dir, 'not-a-folder'), join(dir, 'cache')]
  const paths = await Promise.all([1, 2, 3].map(() => getOrBuildCached(dirs, 'thing', makeSlowly)))

  t.same(new Set(paths), new Set([join(dir, 'cache', 'thing')]))
  t.equal(readFileSync(join(paths[0]!, 'content'), 'utf8'), 'whole')
  t.same(readdirSync(join(dir, 'cache')), ['thing'], 'nothing is left of the others')
})

t.test('what is there is not made again', async t => {
  const dir = t.testdir({ thing: { content: 'earlier' } })
  const path = await getOrBuildCached([join(dir, 'nowhere'), dir], 'thing', async () => {
    throw new Error('made again')
  })
  t.equal(path, join(dir, 'thing'))
})

t.test('what could not be made leaves nothing behind', async t => {
  const dir = t.testdir()
  const failing = getOrBuildCached([dir], 'thing', async work => {
    await mkdir(join(work, 'made'))
    throw new Error('no network')
  })
  await t.rejects(failing, { message: 'no network' })
  t.same(readdirSync(dir), [])
})

t.test('where nothing can be written the last reason is told', async t => {
  const dir = t.testdir({ 'not-a-folder': '' })
  await t.rejects(getOrBuildCached([join(dir, 'not-a-folder')], 'thing', makeSlowly), {
    code: 'EEXIST',
  })
})
