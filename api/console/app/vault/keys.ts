import { useState } from 'preact/hooks'
import { call, filled } from '#api/console/app/api-call.ts'
import { canWrite, currentCredential, maskKey, setCredential } from '#api/console/app/credential.ts'
import { hrefTo } from '#api/console/app/address.ts'
import { formatShortDay, pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import {
  confirmButton,
  dialogButton,
  dialogForm,
  useSecret,
} from '#api/console/app/parts/dialogs.ts'
import { checkboxField, selectField, textField, useFields } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { editableList } from '#api/console/app/parts/notes.ts'
import { useCall, useListing, type QueryState } from '#api/console/app/queries.ts'
import type { EndpointResponse } from '#api/client/client.ts'
import { AccountEvents } from '#api/console/app/vault/account-events.ts'
import { MemoryKeys } from '#api/console/app/vault/memory-keys.ts'

type Minted = { key: string; rotated: boolean; external_id?: string }

/** Lists and creates Memory Keys, and clears the vault. */
export function Keys(): View {
  const [showSecret, secretView] = useSecret()
  const [turn, setTurn] = useState(0)
  const { owner } = currentCredential()!
  const onMinted = (minted: Minted): void =>
    showSecret({
      title: 'Your new key',
      explanation: explainMinted(minted),
      secret: minted.key,
      onClose() {
        setTurn(turn + 1)
        // Another credential remounts the page: only after the secret is read.
        if (minted.rotated) setCredential({ ...currentCredential()!, key: minted.key })
      },
    })
  return page({
    title: 'Keys',
    description: 'One key opens one vault.',
    children: html`${section(
      'Memory Keys',
      html`<div class="panel stack">
        <p>This tab uses <code>${maskKey(currentCredential()!)}</code>.</p>
        <div class="actions">
          ${dialogButton('Rotate this key', onClose =>
            renderComponent(RotateForm, { onClose, onMinted }),
          )}
          ${dialogButton(
            'New key with a vault of its own',
            onClose => renderComponent(MintForm, { onClose, onMinted }),
            { kind: 'main' },
          )}
        </div>
        ${
          owner
            ? renderComponent(MemoryKeys, { key: turn })
            : html`<p class="quiet">
                It opens this vault alone. All keys and what concerns the account are shown to the
                key that was made with it.
              </p>`
        }
      </div>`,
    )}
    ${owner && section('Provider keys', renderComponent(ProviderKeys, {}))}
    ${owner && section('What was done to the account', renderComponent(AccountEvents, {}))}
    ${canWrite() && section('Empty the vault', clearVault())} ${secretView}`,
  })
}

function explainMinted({ rotated, external_id }: Minted): string {
  if (rotated)
    return 'It opens the vault you are in; the old key stops working. It is shown only now.'
  if (external_id === undefined)
    return 'It opens an empty vault of its own, in the same account. It is shown only now.'
  return `It opens the vault of user ${external_id}. POST /v1/keys with this id shows it again.`
}

const clearVault = (): View =>
  html`<div class="panel stack">
    <p class="quiet">Core, reflections and every session. The key stays.</p>
    <div class="actions">
      ${confirmButton('Delete everything', {
        kind: 'danger',
        title: 'Delete everything in this vault?',
        message:
          'Every memory, reflection and session of this key goes at once and cannot be brought back. An export keeps a copy.',
        confirmationText: 'delete',
        act: () => call('DELETE /v1/memory'),
        done: 'The vault is empty.',
      })}
    </div>
  </div>`

type FormProps = { onClose: () => void; onMinted: (minted: Minted) => void }

function MintForm({ onClose, onMinted }: FormProps): View {
  const { fields, of } = useFields({ name: '', until: '', user: '' })
  return dialogForm({
    title: 'New key',
    verb: 'Create',
    onClose,
    act: async () => {
      const { name, until, user } = fields
      const body = filled({
        name,
        expires_at: until && new Date(`${until}T23:59:59`).toISOString(),
        external_id: user.trim() && user,
      })
      onMinted({ ...(await call('POST /v1/keys', { body })), rotated: false })
    },
    fields: html`${textField({ label: 'Name', ...of('name'), maxlength: 200, placeholder: 'New Key' })}
    ${
      currentCredential()!.owner &&
      textField({
        label: 'Your id of the user',
        ...of('user'),
        maxlength: 256,
        hint: 'A user who has a key already gets that one.',
      })
    }
    ${textField({ label: 'Valid until', type: 'date', ...of('until'), hint: 'Empty: for good.' })}`,
  })
}

function RotateForm({ onClose, onMinted }: FormProps): View {
  const [grace, setGrace] = useState('0')
  return dialogForm({
    title: 'Rotate this key',
    verb: 'Rotate',
    onClose,
    act: async () => {
      const body = { grace_seconds: Number(grace) }
      onMinted({ ...(await call('POST /v1/keys/rotate', { body })), rotated: true })
    },
    fields: selectField({
      label: 'The old key works',
      value: grace,
      onValue: setGrace,
      choices: [
        ['0', 'no longer'],
        ['3600', 'for another hour'],
        ['86400', 'for another day'],
      ],
      hint: 'The vault and everything in it stay. This tab goes on with the new key.',
    }),
  })
}

/** The account's keys for model providers: stored sealed, and never displayed again. */
function ProviderKeys(): View {
  const list = useListing('GET /v1/account/provider-keys', {}, answer => answer.provider_keys)
  const models = useCall('GET /v1/models', {})
  const refetch = (): void => {
    list.refetch()
    models.refetch()
  }
  return html`<div class="panel stack">
    ${editableList(list, {
      what: 'provider keys',
      empty: html`<p class="quiet">The account has none: model calls bring their own.</p>`,
      key: ({ provider }) => provider,
      main: ({ provider, masked_key, updated_at }) =>
        html`<p class="row-title">${provider} <code>${masked_key}</code></p>
          ${keyState(provider, models)}
          <p class="quiet">Since ${formatShortDay(updated_at)}</p>`,
      actions: ({ provider }) =>
        confirmButton('Forget', {
          about: `key for ${provider}`,
          title: `Forget the key for ${provider}?`,
          message:
            'Model calls of every Memory Key of the account stop using it at once, and teams whose models it pays for stop sharing.',
          act: () => call('DELETE /v1/account/provider-keys/:provider', { params: { provider } }),
          onDone: refetch,
          done: 'The key is forgotten.',
        }),
    })}
    <div class="actions">
      ${dialogButton('Add a provider key', onClose =>
        renderComponent(AddForm, { onClose, onAdded: refetch }),
      )}
    </div>
  </div>`
}

/** Whether the provider takes the key, as far as its list of models tells. */
function keyState(
  provider: string,
  { answer, fault }: QueryState<EndpointResponse<'GET /v1/models'>>,
): View | null {
  const list = answer?.providers.find(one => one.provider === provider)
  const words = list?.fault ?? (fault?.message.includes(provider) ? fault.message : undefined)
  if (words !== undefined) return html`<p class="fault-words">${words}</p>`
  return list === undefined
    ? null
    : html`<p>
        Works: ${pluralize(list.models.length, 'model')}.
        <a href=${hrefTo('playground')}>Try one</a>
      </p>`
}

type AddProps = { onClose: () => void; onAdded: () => void }

function AddForm({ onClose, onAdded }: AddProps): View {
  const known = useCall('GET /v1/account/provider-keys')
  const { fields, of } = useFields({ provider: 'openai', key: '', isTried: true })
  const model = known.answer?.processors.find(
    ({ provider }) => provider === fields.provider,
  )?.classify_model
  return dialogForm({
    title: 'Add a provider key',
    verb: 'Save',
    onClose,
    act: async () => {
      const params = { provider: fields.provider }
      const key = fields.key.trim()
      if (fields.isTried && model)
        await call('POST /v1/account/provider-keys/:provider/check', {
          params,
          body: { key, models: [model] },
        })
      await call('PUT /v1/account/provider-keys/:provider', { params, body: { key } })
    },
    onDone: onAdded,
    done: fields.isTried && model ? 'The key works, and is stored.' : 'The key is stored untried.',
    fields: html`${selectField({
      label: 'Provider',
      ...of('provider'),
      choices: (known.answer?.providers ?? []).map(each => [each, each] as const),
    })}
    ${textField({
      label: 'Key',
      type: 'password',
      ...of('key'),
      required: true,
      autocomplete: 'off',
      hint: 'It takes the place of the one before.',
    })}
    ${
      model &&
      checkboxField({
        label: `Ask ${model} once before the key is stored`,
        ...of('isTried'),
        hint: 'A few tokens, which the provider charges.',
      })
    }`,
  })
}
