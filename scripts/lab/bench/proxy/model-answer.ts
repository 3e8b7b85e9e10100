import { randomSentence } from '#scripts/lab/bench/bench-environment.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'

/** The reply of the model double. */
export const modelReply = randomSentence(60, seededRandom(3))

/** The events of its stream: how many, and how far apart. */
export const eventCount = 40
export const eventIntervalMs = 25
