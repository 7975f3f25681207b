"""What deploy/ has, as its real tools read it: helm, kubeconform, promtool, KServe's client; and the metrics page that it counts on."""

import json
import re
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tritonclient.grpc as grpcclient
import yaml
from harness import paths, ports, rawhttp, tls
from harness.repository import Repository
from harness.servers import HOST, Nereid
from tritonclient.utils import InferenceServerException

CHART = paths.ROOT / "deploy" / "helm" / "nereid"
RUNTIME = paths.ROOT / "deploy" / "kserve" / "servingruntime.yaml"
SERVICE = paths.ROOT / "deploy" / "kserve" / "inferenceservice.yaml"
TOOLS = paths.ROOT / "build" / "deploy"
SETUP = "tools/setup_deploy.sh"
OF_DEBIAN = paths.ROOT / "build" / "deps" / "test" / "usr" / "bin"
KUBERNETES = ("1.30.0", "1.34.0", "1.37.0")
ALL = [
    "--set=autoscaling.enabled=true", "--set=serviceMonitor.enabled=true", "--set=rules.enabled=true", "--set=dashboard.enabled=true",
    "--set=options.log-verbose=1", "--set=serviceMonitor.labels.release=prometheus", "--set=serviceAccount.annotations.role=r",
]
FEW = ["--set=models.repository=s3://bucket/models", "--set=models.volume=null", "--set=disruptionBudget.enabled=false", "--set=serviceAccount.name=other"]
TLS = ["--set=tls.http.secret=web", "--set=tls.grpc.secret=calls", "--set=tls.grpc.clients=authority", "--set=tls.metrics.secret=web"]
ALERTS_TEST = Path(__file__).with_name("alerts_test.yaml")
PART = "5d9c7b6f48"
METRIC = re.compile(r"\b(?:nv|nereid|process)_[a-z0-9_]+")
GIVEN_BY_PROMETHEUS = {"namespace", "pod", "instance", "le"}


def tool(name: str, *options: str, fed: str | None = None, cwd: Path | None = None) -> tuple[int, str]:
    program = paths.need(OF_DEBIAN / name, "tools/setup.sh test") if name == "promtool" else paths.need(TOOLS / "bin" / name, SETUP)
    argv = [str(program), *options]
    env = {"HOME": str(TOOLS), "PATH": "/usr/bin:/bin"}
    got = subprocess.run(argv, input=fed, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)
    return got.returncode, got.stdout + got.stderr


def rendered(*options: str, release: str = "release") -> str:
    version = [] if any(each.startswith("--kube-version") for each in options) else [f"--kube-version={KUBERNETES[1]}"]
    status, text = tool("helm", "template", release, str(CHART), *options, *version)
    assert status == 0, text
    return text


def conform(text: str, version: str) -> tuple[int, str]:
    schemas = TOOLS / "schemas"
    places = [f"{schemas}/v{version}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json", f"{schemas}/crd/{{{{.ResourceKind}}}}.json"]
    return tool("kubeconform", "-strict", "-summary", "-kubernetes-version", version, *(f"-schema-location={each}" for each in places), "-", fed=text)


def kinds(text: str) -> list[str]:
    return sorted(re.findall(r"^kind: (\w+)", text, re.MULTILINE))


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("options", [[], ALL, FEW, ALL + TLS], ids=["plain", "all", "few", "tls"])
def test_the_chart_conforms_to_the_schemas_of_kubernetes(version: str, options: list[str]) -> None:
    status, text = conform(rendered(*options, f"--kube-version={version}"), version)
    assert status == 0 and "Invalid: 0, Errors: 0, Skipped: 0" in text, text


def test_that_check_refuses_what_is_wrong() -> None:
    text = rendered(*ALL)
    for right, wrong in (("periodSeconds: 5", "periodSecond: 5"), ("maxReplicas: 10", "maxReplicas: ten"), ("interval: 15s", "intervall: 15s")):
        assert right in text
        status, told = conform(text.replace(right, wrong), KUBERNETES[1])
        assert status == 1, told


def test_what_the_chart_makes() -> None:
    assert kinds(rendered()) == ["Deployment", "PodDisruptionBudget", "Service", "ServiceAccount"]
    assert kinds(rendered(*ALL)) == [
        "ConfigMap", "Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget", "PrometheusRule", "Service", "ServiceAccount", "ServiceMonitor",
    ]
    few = rendered(*FEW)
    assert kinds(few) == ["Deployment", "Service"] and "name: models" not in few and "--model-repository=s3://bucket/models" in few
    text = rendered(*ALL)
    for held in ("runAsNonRoot: true", "readOnlyRootFilesystem: true", "allowPrivilegeEscalation: false", "drop: [ALL]", "type: RuntimeDefault"):
        assert held in text
    assert '"--log-verbose=1"' in text and "replicas: 2\n" not in text.split("HorizontalPodAutoscaler")[0]


def test_helm_lints_it() -> None:
    status, text = tool("helm", "lint", "--strict", str(CHART), *ALL)
    assert status == 0 and "0 chart(s) failed" in text, text


BY_DIGEST = f"host:5000/nereid@sha256:{'0a' * 32}"
VOLUME = "models.volume.persistentVolumeClaim.claimName=models"
SCALED = ("autoscaling.enabled=true", "autoscaling.minReplicas=20")
WATCHED = ("serviceMonitor.enabled=true", "tls.metrics.secret=web", "tls.metrics.clients=authority")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("tls.http.clients=authority",), "clients"),
        (("tls.grpc.clients=authority",), "secret"),
        (("tls.metrics.secret=My_Own",), "secret"),
        (("ports.http=80",), "http"),
        (("ports.http=8001",), "a port each"),
        (("imag.tag=1",), "imag"),
        (("startSeconds=soon",), "startSeconds"),
        (("preStopSeconds=-1",), "preStopSeconds"),
        (("disruptionBudget.maxUnavailable=some",), "maxUnavailable"),
        (("autoscaling.pendingRequests=0",), "pendingRequests"),
        (("autoscaling.scaleDownSeconds=3601",), "scaleDownSeconds"),
        (("models.repository=models",), "repository"),
        (("models.repository=http://host/models",), "repository"),
        (("models.repository=/models:1",), "repository"),
        (("models.volume.name=models", VOLUME), "volume"),
        *(((f"models.repository={scheme}://bucket/models", VOLUME), "models.volume: leave it out") for scheme in ("s3", "gs", "as")),
        *(((f"models.repository={taken}",), f"models.repository: {taken} is taken") for taken in ("/", "//", "/tmp", "/tmp/", "/tls", "/x/../tls/http")),
        *(((f"models.repository={taken}", VOLUME), f"models.repository: {taken} is taken") for taken in ("/tmp", "/opt", "/opt/nereid", "/usr", "/lib64", "/etc", "/proc/1")),
        *(((f"models.repository={taken}", VOLUME), f"models.repository: {taken} is taken") for taken in ("/opt/nereid/bin", "/etc/ssl", "/opt/../usr/lib", "/bin")),
        (("image.repository=host:5000/nereid:1",), "/image/repository"),
        (("image.repository=host/nereid@sha256:abc",), "/image/repository"),
        ((f"image.repository={BY_DIGEST}", "image.tag=one"), "image.tag: leave it out"),
        ((f"image.tag=@{BY_DIGEST.partition('@')[2]}",), "/image/tag"),
        (("env[0].name=A", "env[0].value=1"), "/env/0/value"),
        (("env[0].value=a",), "/env/0': missing property 'name'"),
        *(
            ((f"options.{name}={address}",), f"options.{name}: leave it out")
            for name in ("http-address", "http-a", "grpc-address", "metrics-address")
            for address in ("127.0.0.1", "localhost", "unix:/tmp/socket")
        ),
        (("options.config=/models/nereid.conf",), "options.config: set options"),
        (SCALED, "autoscaling.maxReplicas: 10 is fewer than minReplicas, 20"),
        (("options.http-port=9",), "options.http-port: set ports.http"),
        (("options.metrics-p=9",), "options.metrics-p: set ports.metrics"),
        (("options.exit-timeout-secs=9",), "options.exit-timeout-secs: set stopSeconds"),
        (("options.model-repository=/other",), "options.model-repository: set models.repository"),
        (("options.model-store=/other",), "options.model-store: set models.repository"),
        *(
            ((f"options.{port}-{name}=true",), f"options.{port}-{name}: set tls.{port}")
            for port in ("http", "grpc", "metrics")
            for name in ("use-ssl", "use-ssl-mutual", "server-cert", "server-key", "root-cert")
        ),
        (("options.allow-http=false",), "options.allow-http: leave it out"),
        (WATCHED, "serviceMonitor.tlsConfig: give cert and keySecret"),
        ((*WATCHED, "serviceMonitor.tlsConfig.insecureSkipVerify=true"), "serviceMonitor.tlsConfig: give cert and keySecret"),
        ((*WATCHED, "serviceMonitor.tlsConfig.certFile=/cert"), "serviceMonitor.tlsConfig: give cert and keySecret"),
    ],
)  # fmt: skip
def test_wrong_values_are_refused_by_name(wrong: tuple[str, ...], told: str) -> None:
    status, text = tool("helm", "template", "release", str(CHART), *(f"--set={each}" for each in wrong), f"--kube-version={KUBERNETES[1]}")
    assert status != 0 and told in text, text


def test_what_is_near_to_wrong_values_is_served() -> None:
    for right in (
        ["models.repository=/opt/models", VOLUME], ["models.repository=/tmp/models", VOLUME], ["models.repository=/tmpfs", "models.volume=null"],
        ["models.repository=/etcetera", VOLUME], ["models.repository=/usr/share/models", "models.volume=null"],
        ["options.http-address=::", "options.grpc-address=$(ADDRESS)", "env[0].name=ADDRESS", "env[0].valueFrom.fieldRef.fieldPath=status.podIP"],
        ["models.repository=s3://http://host:9000/bucket/models"], ["options.allow-grpc=false", "options.http-address=0.0.0.0"],
        [*SCALED, "autoscaling.maxReplicas=20"], ["autoscaling.minReplicas=20"], [*WATCHED[1:]],
        [*WATCHED, "serviceMonitor.tlsConfig.cert.secret.name=a", "serviceMonitor.tlsConfig.cert.secret.key=b", "serviceMonitor.tlsConfig.keySecret.name=a", "serviceMonitor.tlsConfig.keySecret.key=c"],
        [*WATCHED, "serviceMonitor.tlsConfig.certFile=/cert", "serviceMonitor.tlsConfig.keyFile=/key"],
    ):  # fmt: skip
        status, text = conform(rendered(*(f"--set={each}" for each in right)), KUBERNETES[1])
        assert status == 0, (right, text)


def test_a_cluster_that_cannot_wait_before_sigterm_is_refused() -> None:
    status, text = tool("helm", "template", "release", str(CHART), "--kube-version=1.29.9")
    assert status != 0 and ">=1.30.0-0" in text, text


@pytest.mark.parametrize(
    ("options", "image"),
    [
        ([], f"nereid:{yaml.safe_load((CHART / 'Chart.yaml').read_text())['appVersion']}"),
        (["--set=image.repository=host:5000/of/nereid", "--set-string=image.tag=1.5"], "host:5000/of/nereid:1.5"),
        ([f"--set=image.repository={BY_DIGEST}"], BY_DIGEST),
        ([f"--set=image.repository={BY_DIGEST.replace('@', ':1@')}"], BY_DIGEST.replace("@", ":1@")),
    ],
)
def test_the_image_has_a_tag_or_a_digest(options: list[str], image: str) -> None:
    (container,) = deployed(*options)["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == image


def test_a_label_is_there_once_and_an_own_one_wins() -> None:
    watching = {"serviceMonitor": "ServiceMonitor", "rules": "PrometheusRule", "dashboard": "ConfigMap"}
    own = [f"--set={each}.labels.helm\\.sh/chart=own" for each in watching]
    text = rendered(*ALL, *own)
    status, told = conform(text, KUBERNETES[1])
    assert status == 0, told
    plain, made = deployed(*ALL), {each["kind"]: each for each in yaml.safe_load_all(text)}
    for kind in watching.values():
        assert made[kind]["metadata"]["labels"] == plain[kind]["metadata"]["labels"] | {"helm.sh/chart": "own"}
    bare = deployed(*ALL, *(f"--set={each}.labels=null" for each in watching))
    assert all(bare[kind]["metadata"]["labels"] == plain["Service"]["metadata"]["labels"] for kind in watching.values())


@pytest.mark.parametrize(
    ("release", "name"), [("123", "nereid-123"), ("1e3", "nereid-1e3"), ("a.b", "a-b-nereid"), ("nereid", "nereid"), ("9-nereid", "nereid-9-nereid")]
)
def test_a_release_of_any_name_is_made(release: str, name: str) -> None:
    """A label is a text also where the name is a number; the name of a service begins with a letter and has no dot."""
    text = rendered(*ALL, *TLS, "--set-string=tls.http.secret=1,tls.grpc.clients=2,tls.metrics.secret=3,serviceAccount.name=4", release=release)
    status, told = conform(text, KUBERNETES[1])
    assert status == 0, told
    for made in yaml.safe_load_all(text):
        assert made["metadata"]["labels"]["app.kubernetes.io/instance"] == release
        assert made["metadata"]["name"].removesuffix("-dashboard") == name


def stops(pod: dict[str, Any]) -> tuple[dict[str, Any] | None, int, int]:
    """What comes before SIGTERM, the time that the server has after it, and the time that Kubernetes gives to both."""
    (container,) = pod["containers"]
    (server,) = (int(each.partition("=")[2]) for each in container["args"] if each.startswith("--exit-timeout-secs="))
    return container.get("lifecycle"), server, pod.get("terminationGracePeriodSeconds", 30)


@pytest.mark.parametrize(
    ("options", "wait", "server"), [([], 10, 30), (["--set=preStopSeconds=3", "--set=stopSeconds=60"], 3, 60), (["--set=preStopSeconds=0"], 0, 30)]
)
def test_a_pod_takes_new_connections_until_nobody_sends_it_any(options: list[str], wait: int, server: int) -> None:
    pod = deployed(*options)["Deployment"]["spec"]["template"]["spec"]
    # Kubernetes 1.30 refuses to sleep for no time.
    assert stops(pod) == ({"preStop": {"sleep": {"seconds": wait}}} if wait else None, server, wait + server + 10)


def test_kserve_gives_the_server_its_time_to_stop() -> None:
    """Knative, which waits by itself, refuses a runtime that says more; the mode Standard has it from the InferenceService."""
    runtime, predictor = yaml.safe_load(RUNTIME.read_text())["spec"], yaml.safe_load(SERVICE.read_text())["spec"]["predictor"]
    before, server, grace = stops(runtime)
    assert before is None and server == 20 and server + 5 <= grace
    wait = predictor["model"]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert wait >= 5 and wait + server + 5 <= predictor["terminationGracePeriodSeconds"]
    assert predictor["model"]["runtime"] == "nereid"


def models_of(*options: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The volumes of the models, and where they are mounted."""
    pod = deployed(*options)["Deployment"]["spec"]["template"]["spec"]
    mounts = pod["containers"][0]["volumeMounts"]
    return [each for each in pod["volumes"] if each["name"] == "models"], [each["mountPath"] for each in mounts if each["name"] == "models"]


def test_the_models_are_a_volume_of_one_kind(tmp_path: Path) -> None:
    """That of the page; none asked for is an empty directory, and nothing where none can be or null asks for nothing."""
    (said,) = re.findall(r"`(models\.volume\.\S+=\S+)`", (paths.ROOT / "docs" / "user" / "deploy.md").read_text())
    assert models_of(f"--set={said}") == ([{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}], ["/models"])
    values = tmp_path / "values.yaml"
    values.write_text("models: { volume: {} }\n")
    for options in ([], [f"--values={values}"]):
        assert models_of(*options) == ([{"name": "models", "emptyDir": {}}], ["/models"])
    for options in (["--set=models.volume=null"], ["--set=models.repository=s3://bucket/models"]):
        assert models_of(*options) == ([], [])
    assert models_of("--set=models.repository=/our #1") == ([{"name": "models", "emptyDir": {}}], ["/our #1"])


def test_options_reach_the_server_as_they_are_written(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text('options: { memory-budget: 10000000, log-info: false, log-format: "1e3", exit-on-error: true, model-namespacing: "a \\"b\\"" }\n')
    arguments = deployed(f"--values={values}")["Deployment"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments[-5:] == ["--exit-on-error=true", "--log-format=1e3", "--log-info=false", "--memory-budget=10000000", '--model-namespacing=a "b"']


def test_a_server_takes_the_command_line_of_the_chart_and_of_kserve(tmp_path: Path) -> None:
    """Its arguments, but for places: repository and ports."""
    repository = Repository(tmp_path / "models")
    repository.identity("one")
    for text in (rendered(), RUNTIME.read_text()):
        options = re.findall(r"^ +- \"?--([a-z-]+)=([^\"\n]*)", text, re.MULTILINE)
        assert {name for name, _ in options} == {"model-repository", "http-port", "grpc-port", "metrics-port", "exit-timeout-secs"}
        argv = [str(paths.nereid_binary()), "doctor", f"--backend-directory={paths.backends()}"]
        argv += [f"--{name}={ports.free_port() if name.endswith('-port') else repository.path if name == 'model-repository' else value}" for name, value in options]
        got = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert got.returncode != 2, got.stderr


def deployed(*options: str, release: str = "release") -> dict[str, Any]:
    """What the chart makes, by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all(rendered(*options, release=release))}


class Secrets:
    """A projected volume with secrets, as the kubelet writes it: what is new lies whole beside what is old, then a link is turned."""

    def __init__(self, folder: Path, volume: dict[str, Any]):
        self.folder, self.projected = folder, volume["projected"]
        self.written = 0
        folder.mkdir()

    def write(self, secrets: dict[str, dict[str, bytes]]) -> None:
        self.written += 1
        data, link = self.folder / f"..{self.written}", self.folder / "..data_tmp"
        for source in self.projected["sources"]:
            for item in source["secret"]["items"]:
                path = data / item["path"]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(secrets[source["secret"]["name"]][item["key"]])
                path.chmod(self.projected["defaultMode"])
                if not (seen := self.folder / path.parent.name).is_symlink():
                    seen.symlink_to(f"..data/{seen.name}")
        link.symlink_to(data.name)
        link.rename(self.folder / "..data")
        shutil.rmtree(self.folder / f"..{self.written - 1}", ignore_errors=True)


def kubernetes_io_tls(pair: tls.Pair) -> dict[str, bytes]:
    return {"tls.crt": pair.cert.read_bytes(), "tls.key": pair.key.read_bytes()}


def shown(port: int) -> bytes:
    """The certificate of a port."""
    with tls.Connection(port, tls.context(None, alpn=["h2"])) as connection:
        return bytes(connection.socket.getpeercert(binary_form=True))


def test_a_server_serves_by_the_secrets_of_the_chart_and_takes_renewed_ones(tmp_path: Path) -> None:
    authority, clients = tls.Authority(tmp_path / "authority"), tls.Authority(tmp_path / "clients")
    pod = deployed(*TLS, "--set=tls.metrics.clients=authority")["Deployment"]["spec"]["template"]["spec"]
    (volume,) = (each for each in pod["volumes"] if each["name"] == "tls")
    (mount,) = (each for each in pod["containers"][0]["volumeMounts"] if each["name"] == "tls")
    told = dict(each.removeprefix("--").split("=") for each in pod["containers"][0]["args"])
    options: dict[str, str | list[str]] = {
        name: value.replace(mount["mountPath"], str(tmp_path / "tls"), 1) for name, value in told.items() if re.search("-ssl|-cert$|-key$", name)
    }
    secrets = Secrets(tmp_path / "tls", volume)
    repository = Repository(tmp_path / "models")
    repository.identity("one")
    pairs = [authority.sign(name) for name in ("web", "calls")]

    def write() -> list[bytes]:
        web, calls = pairs
        secrets.write({"web": kubernetes_io_tls(web), "calls": kubernetes_io_tls(calls), "authority": {"ca.crt": clients.cert.read_bytes()}})
        return [ssl.PEM_cert_to_DER_cert(each.cert.read_text()) for each in (web, calls, web)]

    certificates = write()
    with tls.Secure(repository.path, options) as server:
        open_ports = (server.http_port, server.grpc_port, server.metrics_port)
        assert [shown(port) for port in open_ports] == certificates
        files = {"root_certificates": str(authority.cert)}
        mine = clients.sign("client")
        with tls.Connection(server.metrics_port, tls.context(authority, client=mine)) as connection:
            assert connection.ask("GET", "/metrics").status == 200
        with pytest.raises((ssl.SSLError, ConnectionError)), tls.Connection(server.metrics_port, tls.context(authority)) as connection:
            connection.ask("GET", "/metrics")
        with grpcclient.InferenceServerClient(f"localhost:{server.grpc_port}", ssl=True, private_key=str(mine.key), certificate_chain=str(mine.cert), **files) as client:
            assert client.is_server_ready(client_timeout=60)
        with grpcclient.InferenceServerClient(f"localhost:{server.grpc_port}", ssl=True, **files) as client, pytest.raises(InferenceServerException, match="UNAVAILABLE"):
            client.is_server_ready(client_timeout=60)
        pairs[:] = [authority.sign(name) for name in ("web", "calls")]
        certificates = write()
        server.process.wait_until(lambda: [shown(port) for port in open_ports] == certificates, 60, 0.2)


def test_who_asks_a_pod_with_certificates_asks_over_tls() -> None:
    """Probes, service and Prometheus; the latter knows the name in the certificate and whom to trust."""
    schemes = []
    for options in ([], TLS):
        made = deployed(*ALL, *options)
        container = made["Deployment"]["spec"]["template"]["spec"]["containers"][0]
        probes = {container[f"{name}Probe"]["httpGet"]["scheme"] for name in ("startup", "liveness", "readiness")}
        schemes.append((probes, [port["appProtocol"] for port in made["Service"]["spec"]["ports"]], made["ServiceMonitor"]["spec"]["endpoints"][0].get("scheme")))
    assert schemes == [({"HTTP"}, ["http", "kubernetes.io/h2c", "http"], None), ({"HTTPS"}, ["https"] * 3, "https")]
    checked = made["ServiceMonitor"]["spec"]["endpoints"][0]["tlsConfig"]
    assert checked == {"serverName": "release-nereid.default.svc", "ca": {"secret": {"name": "web", "key": "ca.crt"}}}
    own = deployed(*ALL, *TLS, "--set=serviceMonitor.tlsConfig.insecureSkipVerify=true")["ServiceMonitor"]["spec"]["endpoints"][0]
    assert own["tlsConfig"] == {"insecureSkipVerify": True}


def test_the_versions_are_those_of_the_server() -> None:
    version = subprocess.run([str(paths.nereid_binary()), "--version"], capture_output=True, text=True, timeout=60, check=True).stdout.split()[1]
    assert f'appVersion: "{version}"' in (CHART / "Chart.yaml").read_text()
    assert f"image: nereid:{version}\n" in RUNTIME.read_text()


def test_kserve_knows_each_field_of_its_manifests(tmp_path: Path) -> None:
    python = paths.need(paths.ROOT / "build" / "clients" / "kserve" / "venv" / "bin" / "python", "tools/setup_clients.sh kserve")
    fields = Path(__file__).with_name("kserve_fields.py")
    spoilt = tmp_path / "spoilt.yaml"
    spoilt.write_text(RUNTIME.read_text().replace("autoSelect: true", "autoselect: true", 1))
    for path, status in ((RUNTIME, 0), (SERVICE, 0), (spoilt, 1)):
        got = subprocess.run([str(python), str(fields), str(path)], capture_output=True, text=True, timeout=120, check=False)
        assert got.returncode == status, got.stdout + got.stderr
    assert "autoselect: no such field" in got.stdout


def promtool_says_yes(folder: Path, rules: str, tests: str) -> None:
    (folder / "alerts.yaml").write_text(rules)
    (folder / "alerts_test.yaml").write_text(tests)
    for command in (["check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]):
        status, text = tool("promtool", *command, cwd=folder)
        assert status == 0, text


def test_the_alerts_fire_when_they_should(tmp_path: Path) -> None:
    rules, tests = (CHART / "files" / "alerts.yaml").read_text(), ALERTS_TEST.read_text()
    promtool_says_yes(tmp_path, rules, tests)
    assert set(re.findall(r"alertname: (\w+)", tests)) == set(re.findall(r"alert: (\w+)", rules))


def alerts_test_of(release: str, namespace: str, pod: str, *, seen: bool) -> str:
    """alerts_test.yaml with this pod in namespace a, and what a release in a namespace says: where it is not seen, that it is gone, and nothing else."""
    told = yaml.safe_load(ALERTS_TEST.read_text().replace("p-1", pod))
    checks = [check for test in told["tests"] for check in test["alert_rule_test"]]
    (gone,) = (check["exp_alerts"] for check in checks if check["alertname"] == "NereidIsGone" and check["exp_alerts"])
    gone[0]["exp_annotations"]["summary"] += f" in {namespace}"
    for check in checks:
        if not seen:
            check["exp_alerts"] = gone if check["alertname"] == "NereidIsGone" else []
        for alert in check["exp_alerts"]:
            alert["exp_labels"] |= {"release": release, "namespace": namespace}
    return yaml.safe_dump(told)


@pytest.mark.parametrize(
    ("release", "namespace", "pod", "seen"),
    [
        ("vision", "a", f"vision-nereid-{PART}-x2x4z", True),
        ("v" * 50, "a", f"{'v' * 50}-{PART[:7]}x2x4z", True),
        ("vision", "b", f"vision-nereid-{PART}-x2x4z", False),
        ("speech", "a", f"vision-nereid-{PART}-x2x4z", False),
        ("vision", "a", f"vision-nereid-2-{PART}-x2x4z", False),
    ],
)
def test_the_alerts_of_a_release_are_about_its_own_pods(tmp_path: Path, release: str, namespace: str, pod: str, seen: bool) -> None:
    """Kubernetes names a pod after its Deployment, a hash and a part of its own; of a long name it takes 58 characters and that part."""
    rules = deployed(*ALL, f"--namespace={namespace}", release=release)["PrometheusRule"]["spec"]
    promtool_says_yes(tmp_path, yaml.safe_dump(rules), alerts_test_of(release, namespace, pod, seen=seen))


def expressions() -> list[str]:
    board = json.loads((CHART / "files" / "dashboard.json").read_text())
    return [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]


def test_the_expressions_of_the_dashboard_are_prometheus_ones(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": each.replace("$__rate_interval", "5m")} for number, each in enumerate(expressions())
    ]
    assert len(rules) > 20
    (tmp_path / "rules.yaml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    status, text = tool("promtool", "check", "rules", "rules.yaml", cwd=tmp_path)
    assert status == 0 and f"{len(rules)} rules found" in text, text


def test_the_dashboard_is_whole() -> None:
    board = json.loads((CHART / "files" / "dashboard.json").read_text())
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids)) and board["uid"] == "nereid"
    variables = {each["name"] for each in board["templating"]["list"]} | {"__rate_interval"}
    asked = set(re.findall(r"\$\{?(\w+)", json.dumps(board)))
    assert asked - {"__all"} <= variables, asked - variables
    spaces = [(p["gridPos"]["x"], p["gridPos"]["y"], p["gridPos"]["w"], p["gridPos"]["h"]) for p in board["panels"]]
    for number, (x, y, w, h) in enumerate(spaces):
        assert x + w <= 24
        for u, v, width, height in spaces[:number]:
            assert x >= u + width or u >= x + w or y >= v + height or v >= y + h, "two panels in one place"


def test_each_metric_that_is_asked_for_is_served_with_its_labels(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "models")
    repository.identity("one", extra="response_cache { enable: true }\n")
    body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [1]}]}).encode()
    with Nereid(repository.path, {"cache-config": "local,size=1048576", "cache-directory": str(paths.BUILD / "caches")}) as server:
        for sent, status in ((body, 200), (body, 200)):
            assert rawhttp.request(HOST, server.http_port, "POST", "/v2/models/one/infer", body=sent).status == status
        page = rawhttp.request(HOST, server.metrics_port, "GET", "/metrics").body.decode()
    bounds = set(re.findall(r'nereid_inference_request_latency_seconds_bucket\{.*le="([^"]+)"', page))
    assert bounds >= (counted := set(re.findall(r'le="([^"]+)"', (CHART / "files" / "alerts.yaml").read_text()))) and counted
    served: dict[str, set[str]] = {}
    for line in page.splitlines():
        if found := re.match(r"(\w+)(?:\{(.*)\})? ", line):
            served.setdefault(found[1], set()).update(re.findall(r"(\w+)=\"", found[2] or ""))
        elif declared := re.match(r"# TYPE (\w+)", line):
            served.setdefault(declared[1], set())
    # A failure has a reason; none was asked for here.
    served["nv_inference_request_failure"] |= {"model", "version", "reason"}
    files = [path.read_text() for path in (CHART / "files").iterdir()] + [(CHART / "templates" / "hpa.yaml").read_text()]
    asked = {name for text in files for name in METRIC.findall(text)}
    assert len(asked) > 25 and asked <= set(served), asked - set(served)
    for each in expressions() + re.findall(r"expr: (?:\|-\n)?((?:.|\n {8,})*)", (CHART / "files" / "alerts.yaml").read_text()):
        together = {label.strip() for group in re.findall(r"by \(([^)]*)\)", each) for label in group.split(",")}
        for name, selected in re.findall(r"\b((?:nv|nereid|process)_[a-z0-9_]+)(?:\{([^}]*)\})?", each):
            labels = (together | set(re.findall(r"(\w+)(?:=|!)", selected))) - GIVEN_BY_PROMETHEUS
            assert labels <= served[name], (each, name, labels - served[name])
