import type { Config } from '#shared/core/config.ts'
import { releaseStepMissing } from '#shared/core/refusals.ts'
import type { Log } from '#shared/core/log.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import {
  insertDefaultModel,
  changeDefaultModel,
  lockDefaultModel,
  countVaultsByModel,
} from '#shared/vault/reembed/vault-models.postgres.ts'

export type DefaultEmbeddingModel = {
  /** The model for new vaults and for shared memories. */
  model: string
  /** Models of vaults that have memories. */
  modelsInUse: ReadonlySet<string>
}

/**
 * The default embedding model of a database: that of the first process, until `EMBEDDINGS` names another one. A
 * provider key in the environment changes nothing. Vaults that have memories keep their model.
 *
 * @param log for warnings to the operator; null logs nothing
 * @throws Refusal `unavailable` when the database is out of reach, or not of this version yet.
 */
export async function resolveDefaultEmbeddingModel(
  postgres: Postgres,
  {
    embeddingModel,
    isEmbeddingModelExplicit,
  }: Pick<Config, 'embeddingModel' | 'isEmbeddingModelExplicit'>,
  log: Pick<Log, 'warn'> | null,
): Promise<DefaultEmbeddingModel> {
  const firstModel = await postgres
    .transaction(async tx => {
      const storedModel = await lockDefaultModel(tx)
      if (storedModel === undefined) await insertDefaultModel(tx, embeddingModel)
      else if (storedModel !== embeddingModel && isEmbeddingModelExplicit)
        await changeDefaultModel(tx, embeddingModel)
      return storedModel ?? embeddingModel
    })
    .catch(rejectUnmigratedDatabase)
  const model = isEmbeddingModelExplicit ? embeddingModel : firstModel
  const modelsOfVaults = await countVaultsByModel(postgres.query)

  if (model !== embeddingModel) {
    const hint =
      `Vaults stay with ${model}, the model this database began with. Set EMBEDDINGS=${embeddingModel} ` +
      'to change what new vaults get; POST /v1/memory/reembed then moves a vault that is there'
    log?.warn({ embeddings: model, environment: embeddingModel, hint }, 'embeddings.kept')
  }
  const vaultsOfOtherModels = modelsOfVaults.filter(row => row.model !== model)
  if (vaultsOfOtherModels.length > 0) {
    const hint =
      'They are found and added to with that model, which must stay within reach, until ' +
      'POST /v1/memory/reembed moves them'
    log?.warn(
      { embeddings: model, elsewhere: vaultsOfOtherModels, hint },
      'embeddings.vaults-elsewhere',
    )
  }
  return { model, modelsInUse: new Set(modelsOfVaults.map(row => row.model)) }
}

const undefinedTable = '42P01'

function rejectUnmigratedDatabase(error: unknown): never {
  if ((error as { code?: unknown }).code !== undefinedTable) throw error
  throw releaseStepMissing('The database has not been brought to this version yet')
}
