import t from 'tap'
import { shiftEmbedder } from '#scripts/lab/bench/harm/shifted-embedder.ts'
import {
  Calibrator,
  measureCalibration,
  unmeasuredCalibration,
} from '#shared/models/calibration/calibrate-embedder.ts'
import { recordCalibration } from '#shared/models/calibration/calibrations.postgres.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import { scoreFromCosine } from '#shared/search/ranking/ranges.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const local = localEmbedder()
const scattered = { unrelated: 0.5, scatter: 0.3, dimension: 256 }

t.test(
  'a model whose texts are all near to each other gets the scores of one that is not',
  async t => {
    const plain = await measureCalibration(local)
    for (const unrelated of [0.15, 0.3, 0.5, 0.7]) {
      const { calibration } = await shiftEmbedder(local, {
        unrelated,
        scatter: 0,
        dimension: 1_025,
      })
      t.ok(Math.abs(calibration.floor - plain.floor) < 0.01)
      for (const cosine of [0, 0.2, 0.4, 0.6, 0.9]) {
        const moved = scoreFromCosine(cosine + unrelated * (1 - cosine), calibration)
        t.ok(Math.abs(moved - scoreFromCosine(cosine, plain)) < 0.01, `${cosine} at ${unrelated}`)
      }
    }
  },
)

t.test('languages stand on one scale, and a model says which scripts it does not know', async t => {
  const plain = await measureCalibration(local)
  const far = await shiftEmbedder(local, { unrelated: 0.6, scatter: 0, dimension: 1_025 })
  const near = await shiftEmbedder(local, { unrelated: 0, scatter: 0, dimension: 1_025 })
  /** Vectors of texts in Chinese characters are moved together, or are one. */
  const mixed = (others: (text: string) => Promise<Float32Array>) => {
    const embed = (texts: readonly string[]) =>
      Promise.all(
        texts.map(text => (/\p{sc=Han}/u.test(text) ? others(text) : near.embedQuery(text))),
      )
    return measureCalibration({ embedTexts: embed, embedQueries: embed })
  }
  const moved = await mixed(text => far.embedQuery(text))
  t.ok(Math.abs(moved.unrelated - plain.unrelated) < 0.05, `${moved.unrelated}, ${plain.unrelated}`)
  const blind = await mixed(() => near.embedQuery('The sea is blue.'))
  const isNew = (code: string): boolean => !plain.unknownScripts?.includes(code)
  t.same(blind.unknownScripts?.filter(isNew), ['Han', 'Hira'])
  t.ok(Math.abs(blind.unrelated - plain.unrelated) < 0.05)
})

t.test('of a model that finds no meaning, only equal texts score', async t => {
  const chance = await shiftEmbedder(local, { ...scattered, scatter: 1 })
  const { unrelated, same, floor } = chance.calibration
  t.ok(same > unrelated && floor >= 0.35, 'a scale all the same')
  const [one, other] = await chance.embedTexts(['The sea is blue.', 'The sea is blue today.'])
  const cosine = one!.reduce((sum, value, i) => sum + value * other![i]!, 0)
  t.ok(scoreFromCosine(cosine, chance.calibration) < 0.35)
  t.equal(scoreFromCosine(1, chance.calibration), 1)
})

t.test('a space is measured once, in the background, for all processes', async t => {
  const { postgres, log } = await createTestBackend(t)
  const shifted = await shiftEmbedder(local, scattered)
  let calls = 0
  const counted = {
    ...shifted,
    embedTexts: (texts: readonly string[]) => (calls++, shifted.embedTexts(texts)),
  }
  const embedder = await new Calibrator(postgres, log).calibrate(counted)
  t.same(embedder.calibration, unmeasuredCalibration, 'requests do not wait')
  await waitUntil('measured', () => embedder.calibration !== unmeasuredCalibration)
  t.same(embedder.calibration, shifted.calibration)
  t.equal(calls, 1)

  const later = await new Calibrator(postgres, log).calibrate(counted)
  t.same(later.calibration, shifted.calibration, 'holds at once in the next process')
  t.equal(calls, 1)
  const other = { unrelated: 0.3, same: 0.8, floor: 0.4, typical: 0.2 }
  const kept = await recordCalibration(postgres.query, shifted.space, other)
  t.same(kept, shifted.calibration, 'the first one stays')
})

t.test('a model that does not answer is measured later, and not after the end', async t => {
  const { postgres, log } = await createTestBackend(t)
  let calls = 0
  const calibrator = new Calibrator(postgres, log)
  const silent = {
    ...local,
    space: 'silent',
    embedTexts: () => (calls++, Promise.reject(new Error('down'))),
  }
  const embedder = await calibrator.calibrate(silent)
  await waitUntil('asked', () => calls === 1)
  calibrator.stop()
  t.same(embedder.calibration, unmeasuredCalibration)
})

t.test('no call of the measurement has more queries than a slow model answers in time', async t => {
  const counts: number[] = []
  const counting: typeof local = {
    ...local,
    embedQueries(texts, signal) {
      counts.push(texts.length)
      return local.embedQueries(texts, signal)
    },
  }
  t.same(await measureCalibration(counting), await measureCalibration(local))
  // 3.4 s for a call, some 45 ms for a query on a processor with nothing else to do.
  t.ok(Math.max(...counts) <= 6, counts.join(' '))
})
