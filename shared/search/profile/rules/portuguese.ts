import { compileRules } from '#shared/search/profile/rules/rule.ts'

const portugueseKin =
  '(?:irmã|irmão|mãe|pai|mulher|esposa|marido|esposo|companheira|companheiro|namorada|namorado|filha|filho|bebê|prima|primo|tia|tio|sobrinha|sobrinho|avó|avô|chefe|patroa|patrão|colega|vizinha|vizinho|médica|médico|amiga|amigo|melhor amiga|melhor amigo|cachorra|cachorro|cadela|cão|gata|gato|coelho|cavalo)'

const portugueseProfessions =
  '(?:enfermeir[ao]|professora?|médic[ao]|advogad[ao]|engenheir[ao]|desenvolvedora?|programadora?|estudante|arquitet[ao]|jornalista|contadora?|cozinheir[ao]|padeir[ao]|designer|tradutora?|músic[ao]|aposentad[ao]|pesquisadora?|veterinári[ao]|dentista|eletricista|artista|escritora?|fotógraf[ao]|vendedora?)'

export const portuguese = compileRules(portugueseKin, [
  {
    kind: 'name',
    cues: 'chamo',
    pattern: '(?:me chamo|chamo-me) {x}',
    subject: 'name',
    isName: true,
  },
  {
    kind: 'name',
    cues: 'chamar chame',
    pattern: '(?:me chamar|me chame) (?:de )?{x}',
    subject: 'form of address',
    isName: true,
  },
  {
    kind: 'name',
    cues: 'nome',
    pattern: 'meu nome (?:completo )?é {x}',
    subject: 'name',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'minha meu nossa nosso',
    pattern: '(?:minha|meu|nossa|nosso) {kin} (?:se chama|chama-se|é) (?:[oa] )?{x}',
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'minha meu nossa nosso',
    pattern: '(?:minha|meu|nossa|nosso) {kin},? {x}',
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'tenho temos',
    pattern: '(?:tenho|temos) (?:uma?|dois|duas|três|quatro) (?:filh[ao]s?|irmãos?|irmãs?){end}',
  },
  {
    kind: 'place',
    cues: 'moro vivo moramos vivemos',
    pattern: '(?:moro|vivo|moramos|vivemos) (?:agora |atualmente )?(?:em|no|na|nos|nas) {x}',
    subject: 'home',
  },
  { kind: 'place', cues: 'sou venho', pattern: '(?:sou|venho) d[eoa] {x}', isName: true },
  {
    kind: 'place',
    cues: 'mudei mudamos mudámos',
    pattern: '(?:mudei|mudamos|mudámos)(?:-me|-nos)? (?:[^.;]{0,40}? )?para (?:[oa] )?{x}',
    subject: 'home',
    isName: true,
  },
  {
    kind: 'place',
    cues: 'cresci nasci',
    pattern: '(?:cresci|nasci) (?:em|no|na) (?![0-9]){x}',
    isName: true,
  },
  {
    kind: 'role',
    cues: 'trabalho',
    pattern: 'trabalho (?:agora |atualmente )?como {x}',
    subject: 'occupation',
  },
  {
    kind: 'role',
    cues: 'trabalho',
    pattern: '(?<!não )trabalho (?:agora |atualmente )?(?:em|no|na|para) (?:[oa] )?{x}',
    subject: 'employer',
    isName: true,
  },
  {
    kind: 'role',
    cues: 'sou',
    pattern: `sou (?:uma? )?(?<value>${portugueseProfessions}){end}`,
    subject: 'occupation',
  },
  { kind: 'role', cues: 'estudo', pattern: 'estudo {x}', subject: 'studies' },
  {
    kind: 'date',
    cues: 'aniversário',
    pattern:
      '(?<subject>meu aniversário|nosso aniversário(?: de casamento)?) é (?:em |no |dia |a )?{x}',
    subject: '{subject}',
    isDate: true,
  },
  {
    kind: 'date',
    cues: 'nasci',
    pattern: 'nasci (?:em|a|no dia) {x}',
    subject: 'date of birth',
    isDate: true,
  },
  { kind: 'date', cues: 'anos', pattern: 'tenho (?<value>[0-9]{1,3}) anos', subject: 'age' },
  {
    kind: 'preference',
    cues: 'prefiro',
    pattern: 'prefiro (?!(?:que|isso|isto|esse|essa)(?![a-zß-ɏ]))[a-zß-ɏ]',
  },
  {
    kind: 'preference',
    cues: 'adoro gosto amo',
    pattern:
      '(?:não )?(?:adoro|amo|gosto (?:muito )?d[eoa]s?) (?!(?:isso|isto|ess[ae]|est[ae]|que|como|você)(?![a-zß-ɏ]))[a-zß-ɏ]',
  },
  {
    kind: 'preference',
    cues: 'odeio detesto',
    pattern: '(?:odeio|detesto) (?!(?:isso|isto|ess[ae]|que)(?![a-zß-ɏ]))[a-zß-ɏ]',
  },
  {
    kind: 'preference',
    cues: 'favorito favorita preferido preferida',
    pattern: '(?:minha|meu) (?<subject>[a-zß-ɏ]{2,20} (?:favorit|preferid)[ao]) é {x}',
    subject: '{subject}',
  },
  {
    kind: 'preference',
    cues: 'alérgico alérgica intolerante',
    pattern: 'sou (?:muito )?(?:alérgic[ao]|intolerante) ',
  },
  {
    kind: 'preference',
    cues: 'vegetariano vegetariana vegano vegana',
    pattern: 'sou (?<value>vegetarian[ao]|vegan[ao])',
    subject: 'diet',
  },
  {
    kind: 'instruction',
    cues: 'partir diante futuro',
    pattern:
      '(?:a partir de agora|de agora em diante|daqui em diante|no futuro,){end}(?! (?:moro|sou))',
  },
  {
    kind: 'instruction',
    cues: 'sempre nunca',
    pattern:
      '^(?:por favor,? |e )?(?:nunca (?!(?:mais|me|fui|vi|tive|mi|sei|comi|bebo)(?![a-zß-ɏ]))[a-zß-ɏ]{2,15}|(?!(?:eu|ele|ela|você|o|a|os|as|meu|minha|um|uma|quase|me|não|estou|sou|vou|é|como)(?![a-zß-ɏ]))[a-zß-ɏ]{2,15} sempre{end})',
  },
  { kind: 'instruction', cues: 'pare', pattern: '^(?:por favor,? )?pare de ' },
  {
    kind: 'possession',
    cues: 'tenho temos',
    pattern:
      '(?:tenho|temos) (?:uma?|dois|duas|três) (?:[a-zß-ɏ]{2,15} )?(?:cachorr[ao]s?|c(?:ão|ães)|gat[ao]s?|carros?|bicicleta|moto|casa|apartamento|jardim|guitarra|violão|piano|barco|cavalo){end}',
  },
  { kind: 'change', cues: 'mais', pattern: 'não (?:[a-zß-ɏ]{2,20}) mais{end}' },
  { kind: 'change', cues: 'já', pattern: 'já não [a-zß-ɏ]' },
  { kind: 'change', cues: 'parei deixei', pattern: '(?:parei|deixei) de ' },
  {
    kind: 'change',
    cues: 'mudei mudamos mudámos passei passamos troquei',
    pattern:
      '(?:mudei|mudamos|mudámos|passei|passamos|troquei)(?:-me)? (?:[^.;]{0,30}? )?d[eoa] [^.;]{1,50}? (?:para|a|por) [a-z0-9ß-ɏ]',
  },
  {
    kind: 'change',
    cues: 'mais',
    pattern: 'não trabalho mais (?:em|no|na|para) (?:[oa] )?{x}',
    ends: { kind: 'role', subject: 'employer' },
  },
  {
    kind: 'change',
    cues: 'mais',
    pattern: 'não moro mais (?:em|no|na) {x}',
    ends: { kind: 'place', subject: 'home' },
  },
])
