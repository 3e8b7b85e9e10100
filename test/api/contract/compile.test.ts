import { setImmediate as nextTurn } from 'node:timers/promises'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { contract } from '#api/contract/contract.ts'
import { compileRequestShapes, type Endpoint } from '#api/contract/document.ts'
import { runInSlices } from '#shared/core/event-loop.ts'
import { shape, type Shape } from '#shared/core/shape.ts'
import { refusalOf } from '#test/support/checks/contract.ts'

/** The shapes that requests are checked with. */
const requestShapes = Object.values(contract).flatMap(
  (parts: { endpoint: Endpoint; query?: Shape<unknown>; body?: Shape<unknown> }) =>
    [parts.query, parts.body].filter(shape => shape !== undefined),
)

/** How many schemas are compiled meanwhile. */
function countCompiled(work: () => void): number {
  let count = 0
  Object.defineProperty(Ajv2020.prototype, 'compile', {
    configurable: true,
    value(this: Ajv2020, ...args: Parameters<Ajv2020['compile']>) {
      count++
      return Object.getPrototypeOf(Ajv2020.prototype).compile.apply(this, args)
    },
  })
  try {
    work()
  } finally {
    Reflect.deleteProperty(Ajv2020.prototype, 'compile')
  }
  return count
}

t.test('what compiles is counted', async t => {
  t.equal(
    countCompiled(() => shape({ type: 'string' }).compile()),
    1,
  )
})

t.test('all schemas of requests are compiled ahead, one a turn', async t => {
  let turns = 0
  const steps = compileRequestShapes()
  for (let done = false; !done; await nextTurn()) {
    done = steps.next().done === true
    turns++
  }
  t.ok(turns > requestShapes.length / 2)

  const check = () => requestShapes.forEach(one => refusalOf(one, {}))
  t.equal(countCompiled(check), 0, 'no first check compiles')
  t.ok((await runInSlices(compileRequestShapes())) >= turns - 1)
})
