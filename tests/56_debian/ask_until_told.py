"""A program: asks the server on these ports until its standard input ends. It prints a dot when each client had fifty more answers, and
at the end what was answered and what was lost, as JSON. The tests run it in the network of the machine that they try."""

import json
import select
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness.askers import crowd  # noqa: E402


def main() -> None:
    clients = crowd(int(sys.argv[1]), int(sys.argv[2]))
    for client in clients:
        client.start()
    goal = 50
    while True:
        ended, _, _ = select.select([sys.stdin], [], [], 0.05)  # allowed: ends with the word it waits for, and its clients count meanwhile
        if ended and not sys.stdin.read(1):
            break
        if min(client.answered for client in clients) >= goal:
            goal = min(client.answered for client in clients) + 50
            print(".", flush=True)
    for client in clients:
        client.over.set()
    for client in clients:
        client.join()
    print(json.dumps({"answered": [client.answered for client in clients], "lost": [client.lost for client in clients]}), flush=True)


if __name__ == "__main__":
    main()
