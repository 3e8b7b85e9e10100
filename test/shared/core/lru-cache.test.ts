import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { createLruCache } from '#shared/core/lru-cache.ts'

t.test('the least recently used entry gives way to a new one', async t => {
  const cache = createLruCache<number>(3)
  for (const name of ['a', 'b', 'c']) cache.set(name, 1)
  cache.get('a')
  cache.set('d', 1)
  cache.set('e', 1)
  t.same([...cache.keys()].sort(), ['a', 'd', 'e'])
})

t.test('a thousand rounds leave as many entries as it may have', async t => {
  const cache = createLruCache<number>(10, 60_000)
  for (let n = 0; n < 1_000; n++) cache.set(`name ${n % 37}`, n)
  t.equal(cache.size, 10)
  t.equal(cache.get(`name ${999 % 37}`), 999)
})

t.test('an empty cache takes no memory for entries that may come', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const usedBytes = () => {
    collect()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const before = usedBytes()
  const caches = Array.from({ length: 100 }, () => createLruCache<number>(10_000))
  // 23 MB with places for all.
  t.ok(usedBytes() - before < 2_000_000)
  t.equal(caches.length, 100)
})
