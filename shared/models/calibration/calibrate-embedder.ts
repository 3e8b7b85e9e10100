import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '#shared/core/log.ts'
import type { Calibration, Embedder } from '#shared/domain/embedder.ts'
import type { CalibrationStore } from '#shared/models/calibration/calibrations.postgres.ts'
import { measureCalibration } from '#shared/models/calibration/measure-calibration.ts'

/** Until a model is measured: that of no model in particular, which the texts of a vault then correct. */
export const unmeasuredCalibration: Calibration = {
  unrelated: 0.2,
  same: 0.9,
  floor: 0.35,
  typical: 0.1,
}

/** Between two attempts to measure a model that does not answer. */
const retryMs = 60_000

export type Calibrator = {
  /**
   * Gives an embedder the calibration of its space. One that is stored holds from the start; else the model is
   * measured in the background, and no request waits for that.
   */
  calibrate(embedder: Embedder): Promise<Embedder>
  /** Nothing is measured any more. */
  stop(): void
}

export function createCalibrator(store: CalibrationStore, log: Log): Calibrator {
  const stopping = new AbortController()
  const { signal } = stopping

  async function measure(embedder: Embedder): Promise<Calibration | undefined> {
    while (!signal.aborted) {
      try {
        const measured = await measureCalibration(embedder, signal)
        const calibration = await store.record(embedder.space, measured)
        log.info({ space: embedder.space, calibration }, 'embeddings.calibrated')
        return calibration
      } catch {
        // The breaker of the model reports what is wrong with it.
        await delay(retryMs, undefined, { signal, ref: false }).catch(() => {})
      }
    }
    return undefined
  }

  return {
    async calibrate(embedder) {
      let calibration = await store.find(embedder.space).catch(() => undefined)
      if (!calibration) void measure(embedder).then(measured => (calibration = measured))
      return {
        ...embedder,
        get calibration() {
          return calibration ?? unmeasuredCalibration
        },
      }
    },
    stop: () => stopping.abort(),
  }
}
